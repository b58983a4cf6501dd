// When what is remembered of keys and sessions is void: news by two witnesses, silence, and news that could not be told.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { shardOf } from '../../lib/accounts/shards.ts';
import type { RedisClient } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createRevocations } from '../../lib/keys/revocations.ts';

// Time passes when a test says so: the tests stand one after the other because they share it.
const time = sinon.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
test.after.always(() => time.restore());

/** Redis and MySQL as far as revocations use them; each can be away for one process or for all. */
const createEngines = () => {
  const kept = { redis: {} as Record<string, string>, mysql: new Map<number, string>() };
  const open = (away: { redis: boolean; mysql: boolean }) => {
    const answer = <T>(engine: 'redis' | 'mysql', value: () => T): Promise<T> =>
      away[engine] ? Promise.reject(new Error(`${engine} is away`)) : Promise.resolve(value());
    const redis = {
      hgetall: () => answer('redis', () => ({ ...kept.redis })),
      hset: (_: string, shard: string, value: string) =>
        answer('redis', () => {
          kept.redis = { ...kept.redis, [shard]: value };
        }),
      hsetnx: (_: string, shard: string, value: string) =>
        answer('redis', () => {
          kept.redis = { [shard]: value, ...kept.redis };
        }),
    } as unknown as RedisClient;
    const store = {
      read: () => answer('mysql', () => new Map(kept.mysql)),
      write: (shard: number, value: string) =>
        answer('mysql', () => {
          kept.mysql.set(shard, value);
        }),
    };
    return { redis, store };
  };
  return { kept, open };
};

const setUp = async (t: ExecutionContext) => {
  const engines = createEngines();
  const start = async () => {
    const away = { redis: false, mysql: false };
    const revocations = createRevocations({
      ...{ ...engines.open(away), prefix: 'x:', log: silentLog },
    });
    await revocations.start();
    t.teardown(() => revocations.stop());
    return { revocations, away };
  };
  return { kept: engines.kept, start };
};

type Process = { revocations: { epoch(accountId?: string): string | undefined } };

/** Lets the second of the promise pass: the process must have forgotten what it remembered at `epoch`. */
const hears = async (
  t: ExecutionContext,
  { revocations }: Process,
  epoch: string | undefined,
  accountId?: string,
): Promise<void> => {
  await time.tickAsync(1_000);
  t.not(revocations.epoch(accountId), undefined);
  t.not(revocations.epoch(accountId), epoch);
};

// Of two shards: the last digits of an id decide.
const account = '01a1fdaf-b7c7-7c0d-846c-02042ff60001';
const neighbour = '01a1fdaf-b7c7-7c0d-846c-02042ff60002';

test.serial(
  'an announcement reaches the others within a second, and its own process at once',
  async (t) => {
    const { start } = await setUp(t);
    const [one, other] = [await start(), await start()];
    const [mine, theirs] = [one.revocations.epoch(), other.revocations.epoch()];
    t.truthy(mine);
    await one.revocations.announce();
    t.not(one.revocations.epoch(), mine);
    await hears(t, other, theirs);
  },
);

test.serial(
  'news of an account leave what is remembered of others, and of the platform, as it is',
  async (t) => {
    const { start } = await setUp(t);
    const [one, other] = [await start(), await start()];
    const about = (id?: string) => [one.revocations.epoch(id), other.revocations.epoch(id)];
    const [before, others, platform] = [about(account), about(neighbour), about()];
    await one.revocations.announce(account);
    t.not(one.revocations.epoch(account), before[0]);
    await hears(t, other, before[1], account);
    t.deepEqual(about(neighbour), others);
    t.deepEqual(about(), platform);
  },
);

test.serial('news about everybody are about every account', async (t) => {
  const { start } = await setUp(t);
  const [one, other] = [await start(), await start()];
  const before = other.revocations.epoch(account);
  await one.revocations.announce();
  await hears(t, other, before, account);
});

test.serial('a change whose process died before it could tell is heard from MySQL', async (t) => {
  const { kept, start } = await setUp(t);
  const one = await start();
  const before = one.revocations.epoch(account);
  kept.mysql.set(shardOf(account), 'written with the change');
  await hears(t, one, before, account);
});

test.serial('an announcement is heard once, though two witnesses tell it', async (t) => {
  const { start } = await setUp(t);
  const [one, other] = [await start(), await start()];
  const before = Number(other.revocations.epoch());
  await one.revocations.announce();
  await hears(t, other, String(before));
  await time.tickAsync(900);
  t.is(Number(other.revocations.epoch()), before + 1);
});

for (const lost of ['redis', 'mysql'] as const) {
  test.serial(
    `a process that cannot reach ${lost} alone is heard within a second all the same`,
    async (t) => {
      const { start } = await setUp(t);
      const [one, other] = [await start(), await start()];
      const before = other.revocations.epoch();
      one.away[lost] = true;
      await t.notThrowsAsync(one.revocations.announce());
      await hears(t, other, before);
    },
  );
}

test.serial(
  'what could be told to nobody is owed, and told as soon as somebody listens',
  async (t) => {
    const { start } = await setUp(t);
    const [one, other] = [await start(), await start()];
    const before = other.revocations.epoch();
    Object.assign(one.away, { redis: true, mysql: true });
    await t.notThrowsAsync(one.revocations.announce());
    t.is(other.revocations.epoch(), before);
    Object.assign(one.away, { redis: false, mysql: false });
    await hears(t, other, before);
  },
);

test.serial(
  'without Redis nothing is trusted for a second, and what was remembered before is forgotten',
  async (t) => {
    const { start } = await setUp(t);
    const one = await start();
    const before = one.revocations.epoch();
    one.away.redis = true;
    await time.tickAsync(901);
    t.is(one.revocations.epoch(), undefined);
    one.away.redis = false;
    await hears(t, one, before);
  },
);

test.serial('with MySQL away remembered keys go on: Redis still tells what changes', async (t) => {
  const { start } = await setUp(t);
  const [one, other] = [await start(), await start()];
  other.away.mysql = true;
  const before = other.revocations.epoch();
  await time.tickAsync(1_000);
  t.is(other.revocations.epoch(), before);
  await one.revocations.announce();
  await hears(t, other, before);
});

test.serial(
  'an engine that lost its data, or fell back to older data, brings no older state back',
  async (t) => {
    const { kept, start } = await setUp(t);
    const one = await start();
    const epochs = new Set([one.revocations.epoch()]);
    const old = kept.redis;
    const next = async (change: () => unknown) => {
      const before = one.revocations.epoch();
      await change();
      await hears(t, one, before);
      t.false(epochs.has(one.revocations.epoch()));
      epochs.add(one.revocations.epoch());
    };
    await next(() => one.revocations.announce());
    await next(() => {
      kept.redis = {};
    });
    await next(() => one.revocations.announce());
    // A replica that took over without the last write: MySQL has told of it already.
    kept.redis = old;
    await time.tickAsync(500);
    t.is(one.revocations.epoch(), [...epochs].at(-1));
  },
);
