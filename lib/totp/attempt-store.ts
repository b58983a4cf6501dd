// Attempts to verify in MySQL: which of them a step counted for, and the log of them all.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { byIndex, kindsOf, rowsOfKinds } from '../infra/newest.ts';
import { isOutage } from '../infra/outages.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import type { Subject } from './rules.ts';

type Row = Record<string, unknown>;

export type FailReason = 'wrong_code' | 'used_code' | 'blocked';

/** An attempt as it is made: with the step its code is right for, or why it counts for none. */
export type Attempt = {
  id: string;
  subject: Subject;
  enrollmentId: string;
  priceMicros: number;
  requestId: string;
} & ({ step: number } | { step: null; reason: FailReason });

const keyOf = ({ accountId, mode, phone }: Subject) => ({
  ...{ account_id: idBytes(accountId), mode, phone },
});

export type LogEntry = {
  id: string;
  subject: Subject;
  enrollmentId: string;
  step: number | null;
  status: 'verified' | 'failed';
  reason: FailReason | null;
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

const groupMax = 200;
const groupWaitMs = 2;

/** Used steps are kept this long, in steps; no code is right for one so old. */
const keptSteps = 20;
const purgeEverySteps = 2;
const purgeMost = 5_000;

type Stepped = Attempt & { step: number };

/**
 * Uses steps up, each for the first attempt that brings it and only while its enrollment stands; answers the attempts
 * that have theirs.
 */
const claimSteps = async (trx: Database, attempts: readonly Stepped[]): Promise<Set<string>> => {
  if (attempts.length === 0) return new Set();
  const rows = attempts.map(() => 'SELECT ? AS id, ? AS step, ? AS attempt').join(' UNION ALL ');
  await trx.raw(
    `INSERT IGNORE INTO totp_steps (enrollment_id, step, attempt_id)
     SELECT e.id, u.step, u.attempt FROM (${rows}) u
     JOIN totp_enrollments e ON e.id = u.id AND e.state <> 'disabled'`,
    attempts.flatMap(({ enrollmentId, step, id }) => [idBytes(enrollmentId), step, idBytes(id)]),
  );
  const won = await trx<Row>('totp_steps')
    .whereIn(
      ['enrollment_id', 'step'],
      attempts.map(({ enrollmentId, step }) => [idBytes(enrollmentId), step]),
    )
    .select('attempt_id');
  return new Set(won.map((row) => idText(row.attempt_id as Buffer)));
};

const toEntry = (attempt: Attempt, won: ReadonlySet<string>): LogEntry => {
  const { step } = attempt;
  if (won.has(attempt.id)) return { ...attempt, step, status: 'verified', reason: null };
  const reason = step === null ? attempt.reason : 'used_code';
  return { ...attempt, step, status: 'failed', reason, priceMicros: 0 };
};

const record = (db: Database, attempts: readonly Attempt[]): Promise<LogEntry[]> =>
  withLockRetry(() =>
    db.transaction(async (trx) => {
      const stepped = attempts.filter((attempt): attempt is Stepped => attempt.step !== null);
      const won = await claimSteps(trx, stepped);
      const entries = attempts.map((attempt) => toEntry(attempt, won));
      await trx('totp_log').insert(entries.map(toLogRow));
      return entries;
    }),
  );

export type AttemptStore = ReturnType<typeof createAttemptStore>;

export const createAttemptStore = (db: Database) => {
  let purgedAt = 0;

  const purge = async (newest: number): Promise<void> => {
    if (newest - purgedAt < purgeEverySteps) return;
    purgedAt = newest;
    await db('totp_steps')
      .where('step', '<', newest - keptSteps)
      .limit(purgeMost)
      .delete();
  };

  const grouped = createGrouper<Attempt, LogEntry>({
    maxSize: groupMax,
    maxWaitMs: groupWaitMs,
    blamesOne: (error) => !isOutage(error),
    run: async (attempts) => {
      const entries = await record(db, attempts);
      await purge(Math.max(...attempts.map(({ step }) => step ?? 0)));
      return entries;
    },
  });

  return {
    /** Logs an attempt and says whether its step counted; attempts of a moment share one commit. */
    record: (attempt: Attempt): Promise<LogEntry> => grouped.add(attempt),

    /** Newest first; at most `limit`, older than `before`. */
    list: async (accountId: string, filter: LogFilter): Promise<LogEntry[]> => {
      const { before, status, mode, limit } = filter;
      const account_id = idBytes(accountId);
      const below = before === undefined ? undefined : idBytes(before);
      if (status !== undefined || mode !== undefined) {
        const modes = mode === undefined ? ['live', 'test'] : [mode];
        const rows = await rowsOfKinds(db, limit, {
          ...{ table: 'totp_log', index: 'totp_log_by_kind', columns: ['mode', 'status'] },
          kinds: kindsOf([modes, status === undefined ? ['verified', 'failed'] : [status]]),
          ...{ accountId: account_id, below, from: undefined },
        });
        return rows.map(fromLogRow);
      }
      const query = db<Row>(byIndex(db, 'totp_log', 'totp_log_by_account'))
        .where({ account_id })
        .orderBy('id', 'desc')
        .limit(limit);
      if (below !== undefined) query.where('id', '<', below);
      return (await query).map(fromLogRow);
    },

    drain: () => grouped.drain(),
  };
};
