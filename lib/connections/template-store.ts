// The templates of own WhatsApp numbers in MySQL.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import { judgeNews, type KnownTemplate, type Template } from './rules.ts';

type Row = Record<string, unknown>;

export type TemplateNews = { name: string; language: string; status: string; at: number };

/** A row of the table, without its times. */
export const templateRow = (connectionId: string, { name, language, status }: Template) => ({
  connection_id: idBytes(connectionId),
  ...{ name, language, status },
});

const knownOf = (row: Row): KnownTemplate => ({
  status: String(row.status),
  checkedAt: Number(row.checked_at ?? 0),
  newsAt: Number(row.news_at ?? 0),
  changedAt: Number(row.changed_at ?? 0),
});

export const createTemplateStore = (db: Database) => ({
  /** Notes what the provider said of the templates when it was asked; false when the connection is gone. */
  noteTemplates: async (
    id: string,
    templates: readonly Template[],
    now: number,
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const key = { id: idBytes(id) };
        const found = await trx('whatsapp_connections').where(key).forUpdate().first('id');
        if (found === undefined) return false;
        const rows = templates.map((one) => ({ ...templateRow(id, one), checked_at: now }));
        if (rows.length > 0) {
          await trx('whatsapp_templates')
            .insert(rows)
            .onConflict(['connection_id', 'name', 'language'])
            .merge(['status', 'checked_at']);
        }
        return true;
      }),
    ),

  /**
   * Takes news of a template, unless something newer is known. Answers whether the news is what is known now, also
   * when it came a second time.
   */
  takeNews: async (connectionId: string, news: TemplateNews): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const { name, language, status, at } = news;
        const id = idBytes(connectionId);
        const found = await trx('whatsapp_connections').where({ id }).forUpdate().first('id');
        if (found === undefined) return false;
        const key = { connection_id: id, name, language };
        const row = await trx<Row>('whatsapp_templates').where(key).first();
        const judged = judgeNews(row && knownOf(row), news);
        const columns = { status, news_at: at, ...(judged === 'change' ? { changed_at: at } : {}) };
        if (judged === 'change' || judged === 'confirm') {
          await trx('whatsapp_templates')
            .insert({ ...key, ...columns })
            .onConflict(['connection_id', 'name', 'language'])
            .merge(Object.keys(columns));
        }
        return judged === 'change' || judged === 'again';
      }),
    ),
});
