// Looking across accounts, which only operators may: accounts, connected numbers, messages, requests for capacity.

import { accountFromRow } from '../accounts/row.ts';
import type { Account } from '../accounts/rules.ts';
import { type Database, fitsAscii } from '../infra/mysql.ts';
import { day } from '../kernel/clock.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));
const textOrNull = (value: unknown): string | null => (value === null ? null : String(value));

export type FoundAccount = {
  account: Account;
  balanceMicros: number;
  suspendedAt: number | null;
  suspendedReason: string | null;
  sharedPaused: boolean;
};

const toFound = (row: Row): FoundAccount => ({
  account: accountFromRow(row),
  balanceMicros: Number(row.balance_micros),
  suspendedAt: numberOrNull(row.suspended_at),
  suspendedReason: textOrNull(row.suspended_reason),
  sharedPaused: Boolean(row.shared_paused),
});

const likeText = (text: string): string => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type LookupStore = ReturnType<typeof createLookupStore>;

const accounts = (db: Database) => ({
  /** Newest first: by id, by the beginning of an e-mail address or a phone number, or by a part of name or company. */
  search: async (
    text: string,
    { before, limit }: { before: string | undefined; limit: number },
  ): Promise<FoundAccount[]> => {
    const query = db<Row>('accounts').orderBy('id', 'desc').limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    // As people write numbers: +1 (415) 555-0100.
    const part = likeText(text.startsWith('+') ? text.replace(/[\s().-]/g, '') : text);
    if (uuid.test(text)) query.where({ id: idBytes(text) });
    else if (text.startsWith('+') && !fitsAscii(part)) return [];
    else if (text.startsWith('+')) query.where('phone', 'like', `${part}%`);
    else if (text.includes('@')) query.where('email_key', 'like', `${part.toLowerCase()}%`);
    else if (text !== '') {
      query.where((any) =>
        any
          .where('name', 'like', `%${part}%`)
          .orWhere('company', 'like', `%${part}%`)
          .orWhere('email_key', 'like', `${part.toLowerCase()}%`),
      );
    }
    return (await query).map(toFound);
  },

  find: async (id: string): Promise<FoundAccount | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(id) })
      .first();
    return row === undefined ? undefined : toFound(row);
  },

  /** Requests for capacity that wait for a word, oldest first. */
  pendingCapacity: async (limit: number): Promise<{ accountId: string; id: string }[]> => {
    const rows = await db<Row>('capacity_requests')
      .where({ status: 'pending' })
      .orderBy('id')
      .limit(limit)
      .select('id', 'account_id');
    return rows.map((row) => ({
      accountId: idText(row.account_id as Buffer),
      id: idText(row.id as Buffer),
    }));
  },
});

const toNumber = (row: Row) => ({
  accountId: idText(row.account_id as Buffer),
  accountName: String(row.name),
  phoneNumberId: String(row.phone_number_id),
  displayName: textOrNull(row.display_name),
  displayPhoneNumber: textOrNull(row.display_phone_number),
  qualityRating: String(row.quality_rating),
  status: row.status as 'connected' | 'broken',
  brokenAt: numberOrNull(row.broken_at),
  brokenReason: textOrNull(row.broken_reason),
});

export type ConnectedNumber = ReturnType<typeof toNumber>;

const toMessageRef = (row: Row) => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  requestId: String(row.request_id),
});

export type MessageRef = ReturnType<typeof toMessageRef>;

/** What a message is looked up by. */
export type SoughtMessages = { phone: string } | { requestId: string } | { id: string };

const messages = (db: Database) => ({
  /** The messages of a number, of a request, or with an id; newest first. */
  messages: async (by: SoughtMessages, limit: number): Promise<MessageRef[]> => {
    if ('requestId' in by && !fitsAscii(by.requestId)) return [];
    const query = db<Row>('messages')
      .select('id', 'account_id', 'request_id')
      .orderBy('id', 'desc')
      .limit(limit);
    if ('phone' in by) query.where({ phone: by.phone });
    else if ('requestId' in by) query.where({ request_id: by.requestId });
    else query.where({ id: idBytes(by.id) });
    return (await query).map(toMessageRef);
  },

  /** Messages of an account that failed within the last week, newest first. */
  recentFailures: async (accountId: string, now: number, limit: number) => {
    const rows = await db<Row>('messages')
      .where({ account_id: idBytes(accountId), status: 'failed' })
      .where('id', '>=', idBytes(idAt(now - 7 * day)))
      .orderBy('id', 'desc')
      .limit(limit)
      .select('id', 'account_id', 'request_id');
    return rows.map(toMessageRef);
  },
});

/** Which connected numbers are wanted; `before` is the last one of the part before. */
export type NumberFilter = {
  limit: number;
  before?: string | undefined;
  account?: string | undefined;
};

const numbers = (db: Database) => {
  const connected = () =>
    db<Row>('whatsapp_connections as c')
      .join('accounts as a', 'a.id', 'c.account_id')
      .select('c.*', 'a.name');
  return {
    /** Connected numbers: the broken ones first, then the newest; nothing behind a number that is not there any more. */
    numbers: async ({ limit, before, account }: NumberFilter): Promise<ConnectedNumber[]> => {
      const query = connected()
        .orderBy([
          { column: 'c.status', order: 'desc' },
          { column: 'c.connected_at', order: 'desc' },
          { column: 'c.id', order: 'desc' },
        ])
        .limit(limit);
      if (account !== undefined) query.where('c.account_id', idBytes(account));
      if (before !== undefined) {
        if (!fitsAscii(before)) return [];
        const last = await db<Row>('whatsapp_connections')
          .where({ phone_number_id: before })
          .first();
        if (last === undefined) return [];
        const { status, connected_at: at, id } = last;
        query.where((rest) => {
          rest.where((same) =>
            same
              .where('c.status', String(status))
              .whereRaw('(c.connected_at, c.id) < (?, ?)', [
                ...([Number(at), id as Buffer] as const),
              ]),
          );
          if (status === 'broken') rest.orWhere('c.status', 'connected');
        });
      }
      return ((await query) as Row[]).map(toNumber);
    },

    /** Those of these ids at WhatsApp that are connected. */
    numbersOf: async (ids: readonly string[]): Promise<ConnectedNumber[]> =>
      ((await connected().whereIn('c.phone_number_id', [...ids])) as Row[]).map(toNumber),
  };
};

export const createLookupStore = (db: Database) => ({
  ...accounts(db),
  ...messages(db),
  ...numbers(db),
});
