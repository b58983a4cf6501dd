// The health of a sending number as everybody sees it: for as long as it lasts, and not longer.
import test from 'ava';
import type { RedisClient } from '../../lib/infra/redis.ts';
import { minute, second } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createSenderWatch } from '../../lib/sender/health.ts';
import { createHandClock } from '../support/hand-clock.ts';

/** As much of Redis as the watch uses, with keys that end by the hand clock. */
const stand = () => {
  const clock = createHandClock();
  const kept = new Map<string, { text: string; until: number }>();
  const state = { writes: 0 };
  const redis = {
    set: async (key: string, text: string, _: 'PX', ms: number) => {
      state.writes++;
      kept.set(key, { text, until: clock.now() + ms });
    },
    get: async (key: string) => {
      const found = kept.get(key);
      return found && found.until > clock.now() ? found.text : null;
    },
  } as unknown as RedisClient;
  const watch = createSenderWatch({ redis, prefix: '', clock, log: silentLog });
  return { clock, watch, state };
};

test('a number that stays broken is shown as broken, however long it lasts', async (t) => {
  const { clock, watch, state } = stand();
  for (let n = 0; n < 5; n++) watch.note('1', 'broken');
  const { since } = await watch.shown('1');
  for (let at = 0; at < 30 * minute; at += 5 * second) {
    clock.forward(5 * second);
    watch.note('1', 'broken');
  }
  t.deepEqual(await watch.shown('1'), { status: 'down', since });
  t.true(state.writes <= 32, `${state.writes} writes`);
  watch.note('1', 'ok');
  t.like(await watch.shown('1'), { status: 'ok' });
});

test('what nobody has said for ten minutes is not shown any more', async (t) => {
  const { clock, watch } = stand();
  for (let n = 0; n < 5; n++) watch.note('1', 'throttled');
  t.like(await watch.shown('1'), { status: 'degraded' });
  clock.forward(10 * minute + second);
  t.like(await watch.shown('1'), { status: 'ok', since: null });
});
