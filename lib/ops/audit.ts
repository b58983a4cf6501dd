// Doing something and having it on record: nothing is done that could not be written down first.
import type { Clock } from '../kernel/clock.ts';
import { ServiceError } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { AuditEntry, AuditStatus, AuditStore } from './audit-store.ts';

export type Act = {
  actor: string;
  action: string;
  subject: string;
  detail: Record<string, unknown>;
  requestId: string;
};

export type AuditDeps = { audit: AuditStore; clock: Clock; log: Log };

const subjectMax = 120;

/** Writes down that something begins. @throws when MySQL is away: then it must not begin */
export const beginAct = async ({ audit, clock }: AuditDeps, act: Act): Promise<AuditEntry> => {
  const entry: AuditEntry = {
    ...{ ...act, id: newId(), subject: act.subject.slice(0, subjectMax) },
    ...{ affected: null, status: 'running', error: null, updatedAt: clock.now() },
  };
  await audit.insert(entry);
  return entry;
};

/** Writes down how it ended; a database that is away now leaves it to be found as interrupted. */
export const endAct = async (
  { audit, clock, log }: AuditDeps,
  id: string,
  end: { status: AuditStatus; affected: number | null; error: string | null },
): Promise<void> => {
  await audit
    .update(id, { ...end, at: clock.now() })
    .catch((error: unknown) =>
      log.error({ reason: describeError(error) }, 'the end of an act is not on record'),
    );
};

const describe = (error: unknown): string =>
  error instanceof ServiceError ? error.code : describeError(error);

/** Does `work` between the two words; `affected` counts what it was about. Passes on what `work` answers or throws. */
export const audited = async <T>(
  deps: AuditDeps,
  act: Act,
  work: () => Promise<T>,
  affected: (done: T) => number = () => 1,
): Promise<T> => {
  const { id } = await beginAct(deps, act);
  try {
    const done = await work();
    await endAct(deps, id, { status: 'done', affected: affected(done), error: null });
    return done;
  } catch (error) {
    await endAct(deps, id, { status: 'failed', affected: 0, error: describe(error) });
    throw error;
  }
};
