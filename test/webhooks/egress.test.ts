// Whether it is us: who must have fallen silent, how many, and who speaks against it.
import test from 'ava';
import { hour, minute, second } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import type { NoAnswer, OutboundResult } from '../../lib/kernel/outbound.ts';
import { createEgress } from '../../lib/webhooks/egress.ts';

const answer = (status = 200): OutboundResult => ({
  ...{ kind: 'answer', status, retryAfter: undefined, durationMs: 1 },
});
const none = (reason: NoAnswer = 'timeout'): OutboundResult => ({
  ...{ kind: 'none', reason, durationMs: 1 },
});

const start = () => {
  let now = 1_000_000_000_000;
  const egress = createEgress({ clock: { now: () => now }, log: silentLog });
  const call = (host: number, result: OutboundResult) =>
    egress.isOurs(`https://h${host}.example/hook`, result);
  return {
    call,
    all: (hosts: number, result: OutboundResult) =>
      Array.from({ length: hosts }, (_, host) => call(host, result)),
    pass: (ms: number) => {
      now += ms;
    },
  };
};

test('five hosts that answered and fall silent together are our own fault, from the fifth on', (t) => {
  const { all, call, pass } = start();
  all(6, answer());
  pass(second);
  t.deepEqual(all(6, none('dns')), [false, false, false, false, true, true]);
  t.true(call(99, none()), 'whoever is called now');
  t.false(call(0, none('tls')), 'what is no silence is theirs');
  t.false(call(0, answer(500)));
});

test('four are not enough, nor are five addresses at one host', (t) => {
  const { all, pass } = start();
  all(4, answer());
  pass(second);
  t.false(all(4, none()).includes(true));
  const egress = createEgress({ clock: { now: () => 1 }, log: silentLog });
  const urls = Array.from({ length: 9 }, (_, n) => `https://one.example/${n}`);
  for (const url of urls) egress.isOurs(url, answer());
  t.false(urls.some((url) => egress.isOurs(url, none())));
});

test('hosts that never answered, or long ago, show nothing by their silence', (t) => {
  const { all, pass } = start();
  t.false(all(20, none('connection')).includes(true));
  all(6, answer());
  pass(hour + second);
  t.false(all(6, none()).includes(true));
});

test('while others answer it is not us', (t) => {
  const { all, call, pass } = start();
  all(8, answer());
  pass(second);
  for (const host of [6, 7]) call(host, answer(503));
  t.false(
    [0, 1, 2, 3, 4, 5].some((host) => call(host, none())),
    'six of eight',
  );
});

test('it is over when hosts answer again, and forgotten within a minute', (t) => {
  const { all, call, pass } = start();
  all(6, answer());
  pass(second);
  t.true(all(6, none()).includes(true));
  pass(2 * second);
  for (const host of [0, 1]) call(host, answer());
  pass(second);
  t.false(call(2, none()));
  const other = start();
  other.all(6, answer());
  other.pass(second);
  other.all(6, none());
  other.pass(minute + second);
  t.false(other.call(0, none()));
});
