// TOTP enrollments and their log, in MySQL.
import type { Database } from '../infra/mysql.ts';
import { withLockRetry } from '../infra/mysql.ts';
import { isOutage } from '../infra/outages.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import type { Enrollment, EnrollmentState, Subject } from './rules.ts';

type Row = Record<string, unknown>;

const keyOf = ({ accountId, mode, phone }: Subject) => ({
  ...{ account_id: idBytes(accountId), mode, phone },
});

const fromRow = (row: Row): Enrollment => ({
  id: idText(row.id as Buffer),
  state: row.state as EnrollmentState,
  seed: row.seed === null ? null : String(row.seed),
  lastStep: Number(row.last_step),
  createdAt: Number(row.created_at),
});

export type LogEntry = {
  id: string;
  subject: Subject;
  enrollmentId: string;
  step: number | null;
  status: 'verified' | 'failed';
  reason: 'wrong_code' | 'used_code' | 'blocked' | null;
  priceMicros: number;
  requestId: string;
};

const toLogRow = (entry: LogEntry) => ({
  ...keyOf(entry.subject),
  id: idBytes(entry.id),
  enrollment_id: idBytes(entry.enrollmentId),
  ...{ step: entry.step, status: entry.status, reason: entry.reason },
  ...{ price_micros: entry.priceMicros, request_id: entry.requestId },
});

const fromLogRow = (row: Row): LogEntry => ({
  id: idText(row.id as Buffer),
  subject: {
    accountId: idText(row.account_id as Buffer),
    mode: row.mode as Mode,
    phone: String(row.phone),
  },
  enrollmentId: idText(row.enrollment_id as Buffer),
  step: row.step === null ? null : Number(row.step),
  status: row.status as LogEntry['status'],
  reason: row.reason as LogEntry['reason'],
  priceMicros: Number(row.price_micros),
  requestId: String(row.request_id),
});

export type LogFilter = {
  before: string | undefined;
  status: LogEntry['status'] | undefined;
  mode: Mode | undefined;
  limit: number;
};

const enrollments = (db: Database) => ({
  find: async (subject: Subject): Promise<Enrollment | undefined> => {
    const row = await db<Row>('totp_enrollments').where(keyOf(subject)).first();
    return row === undefined ? undefined : fromRow(row);
  },

  /** Runs `decide` on the enrollment while nobody else changes it; what it returns, if anything, is written. */
  change: (
    subject: Subject,
    decide: (present: Enrollment | undefined) => (Enrollment & { at: number }) | undefined,
  ): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const key = keyOf(subject);
        const row = await trx<Row>('totp_enrollments').where(key).forUpdate().first();
        const next = decide(row === undefined ? undefined : fromRow(row));
        if (!next) return;
        const values = {
          ...{ id: idBytes(next.id), state: next.state, seed: next.seed },
          ...{ last_step: next.lastStep, created_at: next.createdAt, confirmed_at: null },
        };
        await trx('totp_enrollments')
          .insert({ ...key, ...values })
          .onConflict()
          .merge(values);
      }),
    ),

  /**
   * Uses a step up, if no other call used that step or a later one, in an enrollment of that state; one that was
   * unconfirmed is confirmed by it. `resealed` replaces a seed that an older key sealed. Answers false otherwise.
   */
  useStep: async (
    subject: Subject,
    given: {
      id: string;
      state: Exclude<EnrollmentState, 'disabled'>;
      step: number;
      at: number;
      resealed: string | undefined;
    },
  ): Promise<boolean> => {
    const changed = await db('totp_enrollments')
      .where({ ...keyOf(subject), id: idBytes(given.id), state: given.state })
      .where('last_step', '<', given.step)
      .update({
        last_step: given.step,
        state: 'confirmed',
        confirmed_at: db.raw('COALESCE(confirmed_at, ?)', [given.at]),
        ...(given.resealed === undefined ? {} : { seed: given.resealed }),
      });
    return changed === 1;
  },

  /** Enrollments with a seed, in order of id, after `after`; for sealing them anew. */
  page: async (after: string | undefined, limit: number) => {
    const query = db<Row>('totp_enrollments').whereNotNull('seed').orderBy('id').limit(limit);
    if (after !== undefined) query.where('id', '>', idBytes(after));
    return (await query).map(fromRow);
  },

  /** Replaces a seed by the same one, sealed with another key; not if it has changed meanwhile. */
  reseal: async (id: string, before: string, seed: string): Promise<void> => {
    await db('totp_enrollments')
      .where({ id: idBytes(id), seed: before })
      .update({ seed });
  },
});

const groupMax = 200;
const groupWaitMs = 2;

const log = (db: Database) => {
  const inserts = createGrouper<LogEntry, undefined>({
    maxSize: groupMax,
    maxWaitMs: groupWaitMs,
    blamesOne: (error) => !isOutage(error),
    run: async (entries) => {
      await withLockRetry(() => db('totp_log').insert(entries.map(toLogRow)));
      return [];
    },
  });
  return {
    /** Resolves after the commit; what is logged within a moment shares one. */
    log: async (entry: LogEntry): Promise<void> => {
      await inserts.add(entry);
    },

    /** Newest first; at most `limit`, older than `before`. */
    list: async (accountId: string, filter: LogFilter): Promise<LogEntry[]> => {
      const { before, status, mode, limit } = filter;
      const query = db<Row>('totp_log')
        .where({ account_id: idBytes(accountId) })
        .orderBy('id', 'desc')
        .limit(limit);
      if (before !== undefined) query.where('id', '<', idBytes(before));
      if (status !== undefined) query.where({ status });
      if (mode !== undefined) query.where({ mode });
      return (await query).map(fromLogRow);
    },

    drain: () => inserts.drain(),
  };
};

export type TotpStore = ReturnType<typeof createTotpStore>;

export const createTotpStore = (db: Database) => ({ ...enrollments(db), ...log(db) });
