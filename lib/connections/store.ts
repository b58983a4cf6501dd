// Own WhatsApp numbers in MySQL: one per account, one account per number; their templates and PINs.

import { type Act, newEntry } from '../accounts/acts.ts';
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { writeSecurityLog } from '../accounts/log-store.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, isDuplicateKey, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { requireActingKey } from '../keys/store.ts';
import { insertNews } from '../messages/news-store.ts';
import { type BrokenReason, type Connection, type Template, templateOf } from './rules.ts';
import { createStateStore } from './state-store.ts';
import { createTemplateStore, templateRow } from './template-store.ts';

type Row = Record<string, unknown>;

/** A connection with what only this house sees of it. */
export type FoundConnection = Connection & {
  sealedToken: string;
  /** Language the account wants; null: that of the settings. */
  accountLanguage: string | null;
};

const textOrNull = (value: unknown): string | null => (value === null ? null : String(value));
const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const fromRow = (row: Row, templates: Template[]): FoundConnection => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  phoneNumberId: String(row.phone_number_id),
  wabaId: textOrNull(row.waba_id),
  source: row.source as Connection['source'],
  displayName: textOrNull(row.display_name),
  displayPhoneNumber: textOrNull(row.display_phone_number),
  qualityRating: String(row.quality_rating),
  status: row.status as Connection['status'],
  brokenAt: numberOrNull(row.broken_at),
  brokenReason: row.broken_reason as BrokenReason | null,
  connectedAt: Number(row.connected_at),
  sealedToken: String(row.sealed_token),
  accountLanguage: textOrNull(row.template_language),
  templates,
});

const reading = (db: Database) => {
  const withTemplates = async (rows: Row[]): Promise<FoundConnection[]> => {
    if (rows.length === 0) return [];
    const ids = rows.map(({ id }) => id as Buffer);
    const templates = (await db('whatsapp_templates').whereIn('connection_id', ids)) as Row[];
    return rows.map((row) =>
      fromRow(
        row,
        templates
          .filter(({ connection_id: of }) => (of as Buffer).equals(row.id as Buffer))
          .map(templateOf),
      ),
    );
  };

  const connections = () =>
    db<Row>('whatsapp_connections as c')
      .join('accounts as a', 'a.id', 'c.account_id')
      .select('c.*', 'a.template_language');

  return {
    /** The account's connection. */
    find: async (accountId: string): Promise<FoundConnection | undefined> => {
      const rows = await connections().where('c.account_id', idBytes(accountId));
      return (await withTemplates(rows as Row[]))[0];
    },

    /** Every connection to a number of the WhatsApp Business account. */
    ofBusiness: async (wabaId: string): Promise<FoundConnection[]> =>
      withTemplates((await connections().where('c.waba_id', wabaId)) as Row[]),

    /** The account that has connected the number. */
    holder: async (phoneNumberId: string): Promise<string | undefined> => {
      const row = await db<Row>('whatsapp_connections')
        .where({ phone_number_id: phoneNumberId })
        .first('account_id');
      return row === undefined ? undefined : idText(row.account_id as Buffer);
    },

    /** How many connections there are, by state. */
    counts: async (): Promise<{ connected: number; broken: number }> => {
      const rows = (await db('whatsapp_connections')
        .groupBy('status')
        .select('status')
        .count({ count: '*' })) as Row[];
      const of = (status: string) => Number(rows.find((row) => row.status === status)?.count ?? 0);
      return { connected: of('connected'), broken: of('broken') };
    },
  };
};

const insertConnection = async (
  trx: Database,
  connection: Connection,
  sealed: { token: string; now: number },
): Promise<void> => {
  await trx('whatsapp_connections').insert({
    id: idBytes(connection.id),
    account_id: idBytes(connection.accountId),
    phone_number_id: connection.phoneNumberId,
    waba_id: connection.wabaId,
    source: connection.source,
    sealed_token: sealed.token,
    display_name: connection.displayName,
    display_phone_number: connection.displayPhoneNumber,
    quality_rating: connection.qualityRating,
    status: connection.status,
    connected_at: connection.connectedAt,
  });
  const rows = connection.templates.map((one) => ({
    ...templateRow(connection.id, one),
    checked_at: sealed.now,
  }));
  if (rows.length > 0) await trx('whatsapp_templates').insert(rows);
};

/** Who changes a connection, when (ms), and what is told of the change. */
export type Changing = { act: Act; now: number; newsOf: NewsOf };

/**
 * Takes the account's connection out and answers what it was. Calls of one account come one after the other.
 * @throws see requireActingKey
 */
const takeOut = async (
  trx: Database,
  accountId: string,
  { act, now }: Changing,
): Promise<FoundConnection | undefined> => {
  const standing = await lockAccount(trx, accountId);
  const keysManageAccount = standing?.keysManageAccount ?? false;
  await requireActingKey(trx, { id: accountId, keysManageAccount }, { act, now });
  const found = await reading(trx).find(accountId);
  if (found) {
    await trx('whatsapp_connections')
      .where({ id: idBytes(found.id) })
      .delete();
  }
  return found;
};

/** A connection that is gone, and what is told of the change. */
export type Gone = { former: FoundConnection | undefined; told: EventWire[] };

type NewsOf = (former: FoundConnection | undefined) => EventWire[];

/** taken: another account has the number, and nothing was changed. */
export type Replaced = { kind: 'taken' } | ({ kind: 'replaced' } & Gone);

/** Writes into the security log which number took the place of which, if any. */
const record = async (
  trx: Database,
  { accountId, act }: { accountId: string; act: Act },
  { former, next }: { former: FoundConnection | undefined; next: Connection | undefined },
): Promise<void> => {
  if (!former && !next) return;
  const from = former?.phoneNumberId ?? null;
  const changes = [{ setting: 'whatsapp_number', from, to: next?.phoneNumberId ?? null }];
  const action = next ? 'whatsapp_connected' : 'whatsapp_disconnected';
  await writeSecurityLog(trx, [newEntry(accountId, act, { action, changes })]);
};

/** Ends a change of the account's connection: what `newsOf` says of it goes with it. */
const tellWith = async (
  trx: Database,
  accountId: string,
  former: FoundConnection | undefined,
  newsOf: NewsOf,
): Promise<Gone> => {
  const told = newsOf(former);
  await insertNews(trx, told);
  await advanceEpoch(trx, accountId);
  return { former, told };
};

const replacing = (db: Database) => ({
  /** Puts `connection` in the place of the account's former one, and answers that one. @throws see requireActingKey */
  replace: async (
    connection: Connection,
    { sealedToken, ...by }: Changing & { sealedToken: string },
  ): Promise<Replaced> => {
    const { accountId } = connection;
    const work = () =>
      db.transaction(async (trx) => {
        const former = await takeOut(trx, accountId, by);
        // With the account locked a duplicate can only be the number.
        await insertConnection(trx, connection, { token: sealedToken, now: by.now });
        await record(trx, { accountId, act: by.act }, { former, next: connection });
        return tellWith(trx, accountId, former, by.newsOf);
      });
    try {
      return { kind: 'replaced', ...(await withLockRetry(work)) };
    } catch (error) {
      if (isDuplicateKey(error)) return { kind: 'taken' };
      throw error;
    }
  },

  /**
   * Deletes the account's connection with its token and templates; answers what it was, if there was one.
   * @throws see requireActingKey
   */
  remove: (accountId: string, by: Changing): Promise<Gone> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const former = await takeOut(trx, accountId, by);
        await record(trx, { accountId, act: by.act }, { former, next: undefined });
        return tellWith(trx, accountId, former, by.newsOf);
      }),
    ),

  /** Keeps `sealedPin` for the number unless there is one; answers the one that is kept. */
  keepPin: async (phoneNumberId: string, sealedPin: string, now: number): Promise<string> => {
    await db('whatsapp_pins')
      .insert({ phone_number_id: phoneNumberId, sealed_pin: sealedPin, created_at: now })
      .onConflict('phone_number_id')
      .ignore();
    const row = await db<Row>('whatsapp_pins').where({ phone_number_id: phoneNumberId }).first();
    return String(row?.sealed_pin);
  },
});

export type ConnectionStore = ReturnType<typeof createConnectionStore>;

export const createConnectionStore = (db: Database) => ({
  ...reading(db),
  ...replacing(db),
  ...createStateStore(db),
  ...createTemplateStore(db),
});
