// Linked chats between MySQL and the cache in front of it, with looks and changes that overtake each other.
import test, { type ExecutionContext } from 'ava';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import type { RedisClient } from '../../lib/infra/redis.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { createLinkStore, type LinkStore } from '../../lib/links/store.ts';
import type { TestDatabase } from '../support/databases.ts';
import { aNumber } from '../support/phones.ts';
import { openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { createMigratedDatabase } from '../support/schema.ts';

let database: TestDatabase;
let server: TestRedis;
let db: Database;

test.before(async () => {
  database = await createMigratedDatabase('links');
  server = await openTestRedis();
  db = createMysql({ url: database.url, pool: 6 });
});
test.after.always(async () => {
  await db?.destroy();
  await server?.close();
  await database?.drop();
});

const openStore = (redis: RedisClient = server.redis): LinkStore =>
  createLinkStore({ db, redis, prefix: server.prefix });

/** A store whose next SET is held back before it leaves. */
const openHeld = () => {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const redis = new Proxy(server.redis, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== 'set') return typeof value === 'function' ? value.bind(target) : value;
      return async (...args: Parameters<RedisClient['set']>) => {
        reached.resolve();
        await released.promise;
        return target.set(...args);
      };
    },
  });
  return { store: openStore(redis), reached: reached.promise, release: released.resolve };
};

const aRecipient = () => {
  const recipient = { accountId: newId(), mode: 'live' as const, phone: aNumber() };
  return { recipient, key: newId() };
};
const chat = (chatId: number) => ({ chatId, proof: 'tap' as const, at: 1 });

test('a look that a link overtakes does not hide the link', async (t) => {
  const { recipient, key } = aRecipient();
  const store = openStore();
  const held = openHeld();
  const look = held.store.chatOf(recipient, key);
  await held.reached;
  await store.link(recipient, key, chat(7));
  held.release();
  t.is(await look, undefined);
  t.is(await store.chatOf(recipient, key), 7);
});

test('a look that an unlinking overtakes does not bring the chat back', async (t) => {
  const { recipient, key } = aRecipient();
  const store = openStore();
  await store.link(recipient, key, chat(7));
  await server.redis.del(`${server.prefix}chat:{${key}}`);
  const held = openHeld();
  const look = held.store.chatOf(recipient, key);
  await held.reached;
  t.true(await store.unlink(recipient, key));
  held.release();
  await look;
  t.is(await store.chatOf(recipient, key), undefined);
});

/** Whether the cache says what MySQL says. */
const agrees = async (t: ExecutionContext, { recipient, key }: ReturnType<typeof aRecipient>) => {
  const cached = await openStore().chatOf(recipient, key);
  await server.redis.del(`${server.prefix}chat:{${key}}`);
  t.is(cached, await openStore().chatOf(recipient, key));
  return cached;
};

test('an unlinking waits for the link that is being made, and wins', async (t) => {
  const who = aRecipient();
  const held = openHeld();
  const linking = held.store.link(who.recipient, who.key, chat(7));
  await held.reached;
  const unlinking = openStore().unlink(who.recipient, who.key);
  held.release();
  await linking;
  t.true(await unlinking);
  t.is(await agrees(t, who), undefined);
});

test('after links and unlinkings at once the cache says what MySQL says', async (t) => {
  for (let round = 0; round < 15; round++) {
    const who = aRecipient();
    const store = openStore();
    await Promise.all([
      store.link(who.recipient, who.key, chat(1)),
      store.chatOf(who.recipient, who.key),
      store.unlink(who.recipient, who.key),
      store.link(who.recipient, who.key, chat(2)),
      store.chatOf(who.recipient, who.key),
      store.unlink(who.recipient, who.key),
    ]);
    await agrees(t, who);
  }
});

test('a change that MySQL did not keep is not remembered', async (t) => {
  const { recipient, key } = aRecipient();
  const failing = createLinkStore({
    ...{ redis: server.redis, prefix: server.prefix },
    db: new Proxy(db, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== 'transaction') return value;
        return (work: (trx: unknown) => Promise<unknown>) =>
          target.transaction(async (trx) => {
            await work(trx);
            throw new Error('not kept');
          });
      },
    }),
  });
  await t.throwsAsync(failing.link(recipient, key, chat(7)), { message: 'not kept' });
  t.is(await openStore().chatOf(recipient, key), undefined);
});

test('a link that is unlinked nowhere but in the cache is forgotten there', async (t) => {
  const { recipient, key } = aRecipient();
  await server.redis.set(`${server.prefix}chat:{${key}}`, 7);
  t.false(await openStore().unlink(recipient, key));
  t.is(await openStore().chatOf(recipient, key), undefined);
});

test('finishing a link that ended meanwhile leaves nothing behind', async (t) => {
  const store = openStore();
  const [gone, lasting] = [newId(), newId()];
  await store.saveLink(lasting, { ...aRecipient().recipient, requestId: 'r' });
  for (const hash of [gone, lasting]) await store.finish(hash, 7);
  t.is(await server.redis.exists(`${server.prefix}link:{${gone}}`), 0);
  t.true((await server.redis.pttl(`${server.prefix}link:{${lasting}}`)) > 0);
  t.true((await store.redeem(lasting, 7))?.done);
});
