// A filtered page is one moment's: what was found as one kind is not shown as another that it became meanwhile.
import test from 'ava';
import { createMysql, type Database, type Transaction } from '../../lib/infra/mysql.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { noFacts } from '../../lib/messages/rules.ts';
import { createMessageStore } from '../../lib/messages/store.ts';
import { createReportStore } from '../../lib/reports/store.ts';
import type { TestDatabase } from '../support/databases.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('lists');
  db = createMysql({ url: database.url, pool: 3 });
});
test.after.always(async () => {
  await db?.destroy();
  await database?.drop();
});

/** The database, where something happens after the first statement of every transaction. */
const withNews = (news: () => Promise<void>): Database => {
  const hooked = (trx: Transaction) =>
    Object.assign((table: string) => trx(table), {
      raw: async (...statement: Parameters<typeof trx.raw>) => {
        const found = await trx.raw(...statement);
        await news();
        return found;
      },
    }) as unknown as Transaction;
  return new Proxy(db, {
    get: (target, name) =>
      name === 'transaction'
        ? (work: (trx: Transaction) => Promise<unknown>, config: object) =>
            target.transaction((trx) => work(hooked(trx)), config)
        : Reflect.get(target, name),
  });
};

test('a page of one state shows that state, whatever happens while it is read', async (t) => {
  const messages = createMessageStore(db, 60);
  const accountId = newId();
  const message = {
    ...({ id: newId(), accountId, mode: 'live', origin: 'send', phone: '+14155550123' } as const),
    ...({
      country: 'US',
      requestId: 'r',
      plan: 'trial',
      priceMicros: 0,
      idempotencyHash: null,
    } as const),
  };
  const at = Date.now();
  const sent = { ...noFacts, channel: 'whatsapp', acceptedAt: at } as const;
  await messages.merge(message, sent);
  let happened = 0;
  const reports = createReportStore(
    withNews(async () => {
      happened += 1;
      await messages.merge(message, { ...sent, verifiedAt: at + 1 });
    }),
  );
  const any = { before: undefined, channel: undefined, mode: undefined, limit: 10 };
  const filter = { ...any, from: undefined, to: undefined };
  const found = await reports.list(accountId, { ...filter, status: 'sent' });
  t.deepEqual([happened, found.map(({ status }) => status)], [1, ['sent']]);
  t.deepEqual(await reports.list(accountId, { ...filter, status: 'sent' }), []);
});
