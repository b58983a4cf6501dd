// Endpoints in MySQL: an account's address, its secrets, how it has fared, and whether it is given up.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { day } from '../kernel/clock.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';
import { numberOrNull, type Row } from './delivery.ts';
import type { Failing } from './rules.ts';

/** Why nothing is sent to an endpoint any more. */
export type DisabledReason = 'gone' | 'failing' | 'unsafe_address';

export type Endpoint = {
  accountId: string;
  url: string;
  disabled: boolean;
  /** When the address was last set: what was learnt of the one before says nothing about this one. */
  changedAt: number;
  failingSince: number | null;
  /** It asked to be left alone until then (Retry-After). */
  pausedUntil: number | null;
  /** Sealed secrets: the present one, and the one before while it still signs. */
  secrets: { present: string | null; before: string | null; beforeUntil: number };
};

/** What the owner of an endpoint sees of it. */
export type EndpointState = Failing & {
  disabledAt: number | null;
  disabledReason: DisabledReason | null;
  pausedUntil: number | null;
};

const textOrNull = (value: unknown): string | null => (value ? String(value) : null);

const columns = [
  ...['id', 'webhook_url', 'webhook_disabled_at', 'webhook_changed_at', 'webhook_failing_since'],
  ...['webhook_paused_until', 'webhook_secret', 'webhook_secret_before'],
  'webhook_secret_before_until',
];

const toEndpoint = (row: Row): Endpoint => ({
  accountId: idText(row.id as Buffer),
  url: String(row.webhook_url),
  disabled: row.webhook_disabled_at !== null,
  changedAt: Number(row.webhook_changed_at ?? 0),
  failingSince: numberOrNull(row.webhook_failing_since),
  pausedUntil: numberOrNull(row.webhook_paused_until),
  secrets: {
    present: textOrNull(row.webhook_secret),
    before: textOrNull(row.webhook_secret_before),
    beforeUntil: Number(row.webhook_secret_before_until ?? 0),
  },
});

const toFailing = (row: Row): Failing => ({
  failingSince: numberOrNull(row.webhook_failing_since),
  failures: Number(row.webhook_failures),
  failingDays: Number(row.webhook_failing_days),
});

// Assignments are made from left to right: the day is counted before it is noted.
const fail = `UPDATE accounts SET webhook_failing_since = COALESCE(webhook_failing_since, ?),
  webhook_failures = webhook_failures + ?,
  webhook_failing_days = webhook_failing_days + IF(webhook_failed_day <=> ?, 0, 1), webhook_failed_day = ?`;
const pause = 'UPDATE accounts SET webhook_paused_until = ?';
/** Nothing is said of an address by how the one before it fared. */
const ofThese = ' WHERE id IN (?) AND (id, COALESCE(webhook_changed_at, 0)) IN (?)';

const failingColumns = ['webhook_failing_since', 'webhook_failures', 'webhook_failing_days'];

/** What is to be noted of an account's endpoint, as it was seen. */
export type Noted = Pick<Endpoint, 'accountId' | 'changedAt'> & { value: number };

/** Endpoints by what is to be noted of them, as `ofThese` wants them: those that share it share a statement. */
const byValue = (noted: readonly Noted[]): [number, string[]][] =>
  [...Map.groupBy(noted, ({ value }) => value)].map(([value, some]) => [
    value,
    [
      some.map(({ accountId }) => idBytes(accountId)),
      some.map(({ accountId, changedAt }) => [idBytes(accountId), changedAt]),
    ] as unknown as string[],
  ]);

const healthy = {
  ...{ webhook_failing_since: null, webhook_failures: 0 },
  ...{ webhook_failing_days: 0, webhook_failed_day: null, webhook_paused_until: null },
};

const changedAfter = 'GREATEST(?, COALESCE(webhook_changed_at, 0) + 1)';

const reading = (db: Database) => ({
  /** The endpoints of those accounts that have one, as they are now. */
  endpoints: async (accountIds: readonly string[]): Promise<Map<string, Endpoint>> => {
    if (accountIds.length === 0) return new Map();
    const rows: Row[] = await db('accounts')
      .whereIn('id', accountIds.map(idBytes))
      .whereNotNull('webhook_url')
      .select(columns);
    return new Map(rows.map(toEndpoint).map((endpoint) => [endpoint.accountId, endpoint]));
  },

  endpoint: async (accountId: string): Promise<Endpoint | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first(columns);
    return row?.webhook_url ? toEndpoint(row) : undefined;
  },

  endpointState: async (accountId: string): Promise<EndpointState | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first();
    return (
      row && {
        ...toFailing(row),
        disabledAt: numberOrNull(row.webhook_disabled_at),
        disabledReason: textOrNull(row.webhook_disabled_reason) as DisabledReason | null,
        pausedUntil: numberOrNull(row.webhook_paused_until),
      }
    );
  },
});

const noting = (db: Database) => ({
  /** Endpoints that took something: whatever was wrong is over. */
  noteHealthy: async (accountIds: readonly string[]): Promise<void> => {
    if (accountIds.length === 0) return;
    const ids = accountIds.map(idBytes);
    await withLockRetry(async () => db('accounts').whereIn('id', ids).update(healthy));
  },

  /** How often each failed just now; answers how they stand, by account. */
  noteFailures: async (failed: readonly Noted[], at: number): Promise<Map<string, Failing>> => {
    if (failed.length === 0) return new Map();
    const today = Math.floor(at / day);
    for (const [times, these] of byValue(failed)) {
      const values = [at, times, today, today, ...these];
      await withLockRetry(() => db.raw(fail + ofThese, values));
    }
    const rows: Row[] = await db('accounts')
      .whereIn(
        'id',
        failed.map(({ accountId }) => idBytes(accountId)),
      )
      .select('id', ...failingColumns);
    return new Map(rows.map((row) => [idText(row.id as Buffer), toFailing(row)]));
  },

  /** Until when endpoints want to be left alone. */
  notePauses: async (pauses: readonly Noted[]): Promise<void> => {
    for (const [until, these] of byValue(pauses)) {
      await withLockRetry(() => db.raw(pause + ofThese, [until, ...these]));
    }
  },
});

const switching = (db: Database) => ({
  /** Gives an endpoint up: what comes is held until it is set again. Nothing happens when it was set after `seen`. */
  disable: async (
    seen: Pick<Endpoint, 'accountId' | 'changedAt'>,
    at: number,
    reason: DisabledReason,
  ): Promise<void> => {
    await db('accounts')
      .where({ id: idBytes(seen.accountId), webhook_disabled_at: null })
      .whereRaw('COALESCE(webhook_changed_at, 0) = ?', [seen.changedAt])
      .update({ webhook_disabled_at: at, webhook_disabled_reason: reason });
  },

  /**
   * An address was set (again): it begins anew, what waits for its turn is told, and what is held is replayed by a
   * job that lasts. Each time gets a later `changedAt`, also within a millisecond: by it an endpoint that was read
   * before is told from the present one.
   */
  enable: (accountId: string, now: number): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const account_id = idBytes(accountId);
        const cleared = { webhook_disabled_at: null, webhook_disabled_reason: null };
        await trx('accounts')
          .where({ id: account_id })
          .update({ ...healthy, ...cleared, webhook_changed_at: trx.raw(changedAfter, [now]) });
        // One that is due makes its process look at the endpoint again, and then at all the others.
        await trx('webhook_deliveries')
          .where({ account_id, status: 'waiting' })
          .orderBy('id')
          .limit(1)
          .update({ next_attempt_at: now });
        const held = trx('webhook_deliveries').where({ account_id, status: 'held' });
        const [{ total = 0 } = {}] = await held.count({ total: '*' });
        if (Number(total) === 0) return;
        await trx('webhook_replays')
          .where({ account_id, finished_at: null })
          .update({
            ...{ finished_at: now, next_at: null },
          });
        await trx('webhook_replays').insert({
          ...{ id: idBytes(newId()), account_id, total: Number(total) },
          ...{ created_at: now, next_at: now },
        });
      }),
    ),
});

export const createEndpointStore = (db: Database) => ({
  ...reading(db),
  ...noting(db),
  ...switching(db),
});
