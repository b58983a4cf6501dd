// The admission limits as plainly as they can be written: every admission kept for ever, every window counted anew.
import type { AdmissionRequest } from '../../lib/limits/admission.ts';
import { exactUpTo, rowsFor } from '../../lib/limits/rules.ts';
import type { LimitRow } from '../../lib/limits/table.ts';

type Kept = { at: number };

export type Verdict = { refusedBy: string | null; waitMs: number };

const subjectOf = (row: LimitRow, request: AdmissionRequest): string => {
  const { mode, accountId, keyId, phoneKey } = request;
  if (row.group === 'phone') return `${mode}/${phoneKey}`;
  if (row.group === 'accountPhone') return `${mode}/${accountId}/${phoneKey}`;
  return row.name === 'credential' ? `${mode}/${accountId}/${keyId}` : `${mode}/${accountId}`;
};

/** When an admission stops counting: exactly after the window, or with its bucket (60 of them, 59 span the window). */
const releaseAt = (row: LimitRow, at: number): number => {
  if (row.limit <= exactUpTo) return at + row.windowMs;
  const width = Math.ceil(row.windowMs / 59);
  return (Math.floor(at / width) + 60) * width;
};

export const createModel = () => {
  const kept = new Map<string, Kept[]>();

  const entriesOf = (row: LimitRow, request: AdmissionRequest): Kept[] => {
    const id = `${row.name}:${subjectOf(row, request)}`;
    const entries = kept.get(id) ?? [];
    kept.set(id, entries);
    return entries;
  };

  const waitOf = (row: LimitRow, request: AdmissionRequest, now: number): number => {
    const entries = entriesOf(row, request);
    if (entries.length < row.limit) return 0;
    const releases = entries
      .map(({ at }) => releaseAt(row, at))
      .filter((release) => release > now)
      .toSorted((a, b) => b - a);
    const release = releases[row.limit - 1];
    return release === undefined ? 0 : release - now;
  };

  /** Admits or refuses at `now`, keeping the admission; ties between rows go to the first. */
  const admit = (request: AdmissionRequest, now: number): Verdict => {
    const rows = rowsFor(request.operation, request.tier);
    let worst: Verdict = { refusedBy: null, waitMs: 0 };
    for (const row of rows) {
      const waitMs = waitOf(row, request, now);
      if (waitMs > worst.waitMs) worst = { refusedBy: row.name, waitMs };
    }
    if (worst.refusedBy === null) for (const row of rows) entriesOf(row, request).push({ at: now });
    return worst;
  };

  const giveBack = (request: AdmissionRequest, at: number): void => {
    for (const row of rowsFor(request.operation, request.tier)) {
      if (row.group !== 'accountPhone') continue;
      const entries = entriesOf(row, request);
      entries.splice(
        entries.findIndex((entry) => entry.at === at),
        1,
      );
    }
  };

  /** Admissions that count in the row at `now`. */
  const used = (name: string, request: AdmissionRequest, now: number): number => {
    const row = rowsFor('send', request.tier).find((candidate) => candidate.name === name);
    if (row === undefined) return 0;
    return entriesOf(row, request).filter(({ at }) => releaseAt(row, at) > now).length;
  };

  return { admit, giveBack, used };
};
