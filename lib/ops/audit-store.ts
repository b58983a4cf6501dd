// The audit log in MySQL: who did what to what, how it ended, and how many it was about.
import { type Database, fitsAscii } from '../infra/mysql.ts';
import { idBytes, idText, idTime } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

export type AuditStatus = 'running' | 'done' | 'stopped' | 'failed' | 'interrupted';

export type AuditEntry = {
  /** UUIDv7: the time is in it. */
  id: string;
  actor: string;
  action: string;
  /** What it was done to: a job, an account, a country. */
  subject: string;
  detail: Record<string, unknown>;
  affected: number | null;
  status: AuditStatus;
  error: string | null;
  requestId: string;
  updatedAt: number;
};

export type AuditFilter = {
  before?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  limit: number;
};

const fromRow = (row: Row): AuditEntry => ({
  id: idText(row.id as Buffer),
  actor: String(row.actor),
  action: String(row.action),
  subject: String(row.subject),
  detail: JSON.parse(String(row.detail)) as Record<string, unknown>,
  affected: row.affected === null ? null : Number(row.affected),
  status: row.status as AuditStatus,
  error: row.error === null ? null : String(row.error),
  requestId: String(row.request_id),
  updatedAt: Number(row.updated_at),
});

export const auditView = (entry: AuditEntry) => ({
  id: entry.id,
  at: new Date(idTime(entry.id)).toISOString(),
  actor: entry.actor,
  action: entry.action,
  subject: entry.subject,
  detail: entry.detail,
  affected: entry.affected,
  status: entry.status,
  error: entry.error,
  request_id: entry.requestId,
  updated_at: new Date(entry.updatedAt).toISOString(),
});

const unknownEnd = 'how it ended is not on record: look at what it was done to';

export type AuditStore = ReturnType<typeof createAuditStore>;

export const createAuditStore = (db: Database) => ({
  insert: async (entry: AuditEntry): Promise<void> => {
    await db('ops_audit').insert({
      ...{ id: idBytes(entry.id), actor: entry.actor, action: entry.action },
      ...{ subject: entry.subject, detail: JSON.stringify(entry.detail) },
      ...{ affected: entry.affected, status: entry.status, error: entry.error },
      ...{ request_id: entry.requestId, updated_at: entry.updatedAt },
    });
  },

  update: async (
    id: string,
    to: { status: AuditStatus; affected: number | null; error: string | null; at: number },
  ): Promise<void> => {
    await db('ops_audit')
      .where({ id: idBytes(id) })
      .update({ status: to.status, affected: to.affected, error: to.error, updated_at: to.at });
  },

  /** Says that something still goes on; what has ended stays so. */
  touch: async (id: string, { affected, at }: { affected: number; at: number }): Promise<void> => {
    await db('ops_audit')
      .where({ id: idBytes(id) })
      .whereIn('status', ['running', 'interrupted'])
      .update({ status: 'running', affected, error: null, updated_at: at });
  },

  find: async (id: string): Promise<AuditEntry | undefined> => {
    const row = await db<Row>('ops_audit')
      .where({ id: idBytes(id) })
      .first();
    return row === undefined ? undefined : fromRow(row);
  },

  /** Newest first. */
  list: async ({ before, action, subject, limit }: AuditFilter): Promise<AuditEntry[]> => {
    if (action !== undefined && !fitsAscii(action)) return [];
    const query = db<Row>('ops_audit').orderBy('id', 'desc').limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    if (action !== undefined) query.where({ action });
    if (subject !== undefined) query.where({ subject });
    return (await query).map(fromRow);
  },

  /** What says "running" and has not been heard of since `before` (ms): nobody can say how it ended. Answers how many. */
  interrupt: async (before: number, at: number): Promise<number> =>
    db('ops_audit')
      .where({ status: 'running' })
      .where('updated_at', '<', before)
      .update({ status: 'interrupted', error: unknownEnd, updated_at: at }),
});
