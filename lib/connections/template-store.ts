// The templates of own WhatsApp numbers in MySQL.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { judgeNews, type KnownTemplate, type Template, templateOf } from './rules.ts';

type Row = Record<string, unknown>;

export type TemplateNews = { name: string; language: string; status: string; at: number };

/** What is to be told of a change, given the templates as they were before it. */
export type NewsOf = (before: readonly Template[]) => EventWire[];

/** What is written of templates, and what is told of it. */
export type Noted = { templates: readonly Template[]; told: EventWire[] };

/** A row of the table, without its times. */
export const templateRow = (connectionId: string, { name, language, status }: Template) => ({
  connection_id: idBytes(connectionId),
  ...{ name, language, status },
});

const knownOf = (row: Row): KnownTemplate => ({
  status: String(row.status),
  checkedAt: Number(row.checked_at ?? 0),
  newsAt: Number(row.news_at ?? 0),
});

/** Locks a connection and answers its account; undefined when it is gone. */
const lockConnection = async (trx: Database, id: Buffer): Promise<string | undefined> => {
  const row = await trx<Row>('whatsapp_connections').where({ id }).forUpdate().first('account_id');
  return row && idText(row.account_id as Buffer);
};

/** Ends a change of templates: what is told of it goes with it. */
const tellWith = async (
  trx: Database,
  accountId: string,
  told: EventWire[],
): Promise<EventWire[]> => {
  await insertNews(trx, told);
  await advanceEpoch(trx, accountId);
  return told;
};

export const createTemplateStore = (db: Database) => ({
  /**
   * Writes what `decide` makes of the templates as they are, after the provider was asked about them; answers that,
   * or undefined when the connection is gone.
   */
  noteTemplates: async (
    id: string,
    { now, decide }: { now: number; decide(present: readonly Template[]): Noted },
  ): Promise<Noted | undefined> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const connection_id = idBytes(id);
        const accountId = await lockConnection(trx, connection_id);
        if (accountId === undefined) return undefined;
        const present = (await trx('whatsapp_templates').where({ connection_id })).map(templateOf);
        const noted = decide(present);
        const rows = noted.templates.map((one) => ({ ...templateRow(id, one), checked_at: now }));
        if (rows.length > 0) {
          await trx('whatsapp_templates')
            .insert(rows)
            .onConflict(['connection_id', 'name', 'language'])
            .merge(['status', 'checked_at']);
        }
        await tellWith(trx, accountId, noted.told);
        return noted;
      }),
    ),

  /**
   * Takes news of a template, unless something newer is known, and writes what `newsOf` says of it; answers that:
   * nothing, where it changed nothing.
   */
  takeNews: async (
    connectionId: string,
    news: TemplateNews,
    newsOf: NewsOf,
  ): Promise<EventWire[]> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const { name, language, status, at } = news;
        const id = idBytes(connectionId);
        const accountId = await lockConnection(trx, id);
        if (accountId === undefined) return [];
        const key = { connection_id: id, name, language };
        const rows: Row[] = await trx('whatsapp_templates').where(key);
        const judged = judgeNews(rows.map(knownOf)[0], news);
        if (judged === 'old') return [];
        await trx('whatsapp_templates')
          .insert({ ...key, status, news_at: at })
          .onConflict(['connection_id', 'name', 'language'])
          .merge(['status', 'news_at']);
        return judged === 'change' ? tellWith(trx, accountId, newsOf(rows.map(templateOf))) : [];
      }),
    ),
});
