// TOTP enrollments in MySQL.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import type { Enrollment, EnrollmentState, Subject } from './rules.ts';

type Row = Record<string, unknown>;

const keyOf = ({ accountId, mode, phone }: Subject) => ({
  ...{ account_id: idBytes(accountId), mode, phone },
});

const fromRow = (row: Row): Enrollment => ({
  id: idText(row.id as Buffer),
  state: row.state as EnrollmentState,
  seed: row.seed === null ? null : String(row.seed),
  createdAt: Number(row.created_at),
});

const nameOf = ({ accountId, mode, phone }: Subject): string => `${accountId} ${mode} ${phone}`;

const nameOfRow = (row: Row): string =>
  nameOf({
    accountId: idText(row.account_id as Buffer),
    mode: row.mode as Subject['mode'],
    phone: String(row.phone),
  });

const groupMax = 100;
const groupWaitMs = 1;

/** Look-ups of a moment share one statement: at hundreds a second a query each is most of what they cost. */
const createFind = (db: Database) => {
  const grouped = createGrouper<Subject, Enrollment | undefined>({
    maxSize: groupMax,
    maxWaitMs: groupWaitMs,
    run: async (subjects) => {
      const any = db<Row>('totp_enrollments');
      for (const subject of subjects) any.orWhere(keyOf(subject));
      const found = new Map((await any).map((row) => [nameOfRow(row), fromRow(row)]));
      return subjects.map((subject) => found.get(nameOf(subject)));
    },
  });
  return (subject: Subject): Promise<Enrollment | undefined> => grouped.add(subject);
};

export type TotpStore = ReturnType<typeof createTotpStore>;

export const createTotpStore = (db: Database) => ({
  find: createFind(db),

  /**
   * Runs `decide` on the enrollment while nobody else changes it; what it returns, if anything, is written, with what
   * is to be told of it.
   */
  change: (
    subject: Subject,
    decide: (
      present: Enrollment | undefined,
    ) => (Enrollment & { at: number; told?: EventWire }) | undefined,
  ): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const key = keyOf(subject);
        const row = await trx<Row>('totp_enrollments').where(key).forUpdate().first();
        const next = decide(row === undefined ? undefined : fromRow(row));
        if (!next) return;
        const values = {
          ...{ id: idBytes(next.id), state: next.state, seed: next.seed },
          ...{ created_at: next.createdAt, confirmed_at: null },
        };
        await trx('totp_enrollments')
          .insert({ ...key, ...values })
          .onConflict()
          .merge(values);
        if (next.told) await insertNews(trx, [next.told]);
      }),
    ),

  /** Confirms an enrollment, and writes what is told of it; false when another call has, or when it is another one. */
  confirm: (
    subject: Subject,
    id: string,
    { at, told }: { at: number; told: EventWire },
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const changed = await trx('totp_enrollments')
          .where({ ...keyOf(subject), id: idBytes(id), state: 'unconfirmed' })
          .update({ state: 'confirmed', confirmed_at: at });
        if (changed === 1) await insertNews(trx, [told]);
        return changed === 1;
      }),
    ),

  /** Replaces a seed by the same one, sealed with another key; not if it has changed meanwhile. */
  reseal: async (id: string, before: string, seed: string): Promise<void> => {
    await db('totp_enrollments')
      .where({ id: idBytes(id), seed: before })
      .update({ seed });
  },
});
