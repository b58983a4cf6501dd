// X-Forwarded-For while TRUSTED_PROXIES is not set: the log says so once an hour, the heartbeat all the time.
import test from 'ava';
import { watchForwarded } from '../../api/forwarded.ts';
import { hour } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createHandClock } from '../support/hand-clock.ts';

const setUp = (trustedProxies: number | undefined) => {
  const clock = createHandClock();
  const said: string[] = [];
  const activity = { forwardedIgnored: false };
  const log = Object.assign({}, silentLog, {
    warn: (_: unknown, text: string) => said.push(text),
  });
  return {
    clock,
    said,
    activity,
    watch: watchForwarded({ config: { trustedProxies }, activity, log, clock }),
  };
};

test('a header that is ignored because nobody said how many proxies there are is told of', (t) => {
  const { clock, said, activity, watch } = setUp(undefined);
  watch(undefined);
  t.deepEqual([said.length, activity.forwardedIgnored], [0, false]);
  for (let time = 0; time < 100; time++) watch('203.0.113.7');
  t.is(said.length, 1);
  t.regex(said[0] ?? '', /TRUSTED_PROXIES is not set/);
  t.true(activity.forwardedIgnored);
  clock.forward(hour);
  watch('203.0.113.7');
  t.is(said.length, 2);
});

test('with TRUSTED_PROXIES set, also to 0, the header is nothing to tell of', (t) => {
  for (const count of [0, 1]) {
    const { said, activity, watch } = setUp(count);
    watch('203.0.113.7');
    t.deepEqual([said.length, activity.forwardedIgnored], [0, false]);
  }
});
