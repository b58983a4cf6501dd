// The security log of accounts in MySQL: written within the transaction of what it tells of, read by the owner.
import type { Database } from '../infra/mysql.ts';
import { day } from '../kernel/clock.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';
import { type Act, type Change, type SecurityEntry, securityLogDays } from './acts.ts';

type Row = Record<string, unknown>;

const idOrNull = (value: unknown): string | null =>
  value === null ? null : idText(value as Buffer);
const textOrNull = (value: unknown): string | null => (value === null ? null : String(value));

const toEntry = (row: Row): SecurityEntry => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  action: row.action as SecurityEntry['action'],
  by: row.made_by as Act['by'],
  credentialId: idOrNull(row.credential_id),
  ip: textOrNull(row.ip),
  requestId: textOrNull(row.request_id),
  subjectId: idOrNull(row.subject_id),
  changes: JSON.parse(String(row.changes)) as Change[],
});

const bytesOrNull = (id: string | null): Buffer | null => (id === null ? null : idBytes(id));

/** Writes entries within the transaction of the change they tell of. */
export const writeSecurityLog = async (
  trx: Database,
  entries: readonly SecurityEntry[],
): Promise<void> => {
  if (entries.length === 0) return;
  await trx('security_log').insert(
    entries.map((entry) => ({
      id: idBytes(entry.id),
      account_id: idBytes(entry.accountId),
      action: entry.action,
      made_by: entry.by,
      credential_id: bytesOrNull(entry.credentialId),
      ip: entry.ip,
      subject_id: bytesOrNull(entry.subjectId),
      changes: JSON.stringify(entry.changes),
      request_id: entry.requestId,
    })),
  );
};

/** The newest entries of an account that these keys made since `since` (ms), at most `most`. */
export const entriesOfKeys = async (
  trx: Database,
  accountId: string,
  { keyIds, since, most }: { keyIds: readonly string[]; since: number; most: number },
): Promise<SecurityEntry[]> => {
  const rows: Row[] = await trx('security_log')
    .where({ account_id: idBytes(accountId), made_by: 'key' })
    .whereIn('credential_id', keyIds.map(idBytes))
    .where('id', '>=', idBytes(idAt(since)))
    .orderBy('id', 'desc')
    .limit(most);
  return rows.map(toEntry);
};

export type SecurityLogStore = ReturnType<typeof createSecurityLogStore>;

export const createSecurityLogStore = (db: Database) => ({
  /** Newest first; at most `limit`, older than the entry `before`. */
  list: async (
    accountId: string,
    { before, limit }: { before: string | undefined; limit: number },
  ): Promise<SecurityEntry[]> => {
    const query = db<Row>('security_log')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    return ((await query) as Row[]).map(toEntry);
  },

  /** Deletes at most `most` entries that are older than 180 days; answers how many. */
  purgeLog: async (now: number, most: number): Promise<number> =>
    Number(
      await db('security_log')
        .where('id', '<', idBytes(idAt(now - securityLogDays * day)))
        .limit(most)
        .delete(),
    ),
});
