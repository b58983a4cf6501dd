// A pumping guard with keys, a clock and a log of its own for each test.
import type { Log, LogFields } from '../../lib/kernel/log.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createRecipientKeys } from '../../lib/kernel/recipients.ts';
import { type CounterDeps, createPumpingCounter } from '../../lib/pumping/count.ts';
import { parseAllowed, type Tally } from '../../lib/pumping/rules.ts';
import { createPumpingStore } from '../../lib/pumping/store.ts';
import type { TestRedis } from '../support/redis-server.ts';
import { start } from './evidence.ts';

export const hour = 3_600_000;
export const recipients = createRecipientKeys({ id: 'k1', key: Buffer.alloc(32, 7) });
/** Where `endings` go when a test says nothing else. */
export const prefixKey = recipients.ofPrefix('a1', '+1415555');

let lanes = 0;

export const createLane = (
  server: Pick<TestRedis, 'redis' | 'prefix'>,
  change: Partial<CounterDeps> = {},
) => {
  let now = start;
  const lines: { fields: LogFields; message: string }[] = [];
  const log: Log = { ...silentLog, warn: (fields, message) => lines.push({ fields, message }) };
  const prefix = `${server.prefix}${lanes++}:`;
  const store = createPumpingStore(server.redis, prefix);
  const deps: CounterDeps = {
    ...{ store, recipients, log, mode: () => 'enforce', allowed: parseAllowed('', '') },
    clock: { now: () => now },
    ...change,
  };
  const { count } = createPumpingCounter(deps);
  return {
    ...{ prefix, store, lines, deps, count },
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
    held: async () => (await store.heldSince(undefined))?.holds ?? [],
    /** What is known of the prefix of `endings`. */
    tally: async (): Promise<Tally> => {
      const known = await store.look({ accountId: 'a1', prefixKey }, now);
      const { settled = 0, verified = 0 } = known.scopes.get(prefixKey)?.codes ?? {};
      return { settled, verified };
    },
  };
};
