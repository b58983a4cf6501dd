// Webhooks: the published vectors of the signature, the schedule, and what an answer leads to.
import test from 'ava';
import { Webhook } from 'standardwebhooks';
import { hour, minute, second } from '../../lib/kernel/clock.ts';
import { deliverWithinMs, judge, readRetryAfter, waitsMs } from '../../lib/webhooks/rules.ts';
import { signedHeaders, signingKey } from '../../lib/webhooks/sign.ts';

test('signatures are the published ones, and the standard package takes them', (t) => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = '{"test": 2432232314}';
  const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
  const headers = signedHeaders({ id, at: 1_614_265_330_000, body, keys: [signingKey(secret)] });
  t.is(headers['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  t.is(headers['webhook-timestamp'], '1614265330');
  const other = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
  const both = signedHeaders({ id, at: Date.now(), body, keys: [other, secret].map(signingKey) });
  for (const one of [secret, other])
    t.deepEqual(new Webhook(one).verify(body, both), { test: 2432232314 });
  t.throws(() => new Webhook(secret).verify(`${body} `, both));
});

const answer = (status: number, retryAfter?: string) => ({
  ...{ kind: 'answer' as const, status, retryAfter, durationMs: 1 },
});
const now = 1_000_000_000_000;
const at = (number: number, more = {}) => ({ number, since: now, now, chance: 0.5, ...more });

test('2xx is success, whatever else is not; redirects are not followed', (t) => {
  for (const status of [200, 201, 204, 299]) t.is(judge(answer(status), at(1)).kind, 'delivered');
  t.like(judge(answer(301), at(1)), { kind: 'again', reason: 'redirect' });
  t.like(judge(answer(410), at(1)), { kind: 'stop', reason: 'gone' });
  t.like(judge({ kind: 'none', reason: 'blocked_address', durationMs: 0 }, at(1)), {
    kind: 'stop',
  });
  t.like(judge({ kind: 'none', reason: 'timeout', durationMs: 0 }, at(1)), {
    ...{ kind: 'again', reason: 'timeout', waitMs: 5 * second },
  });
});

test('a busy endpoint is given a minute, or as long as it asks for; a refusal skips the first steps', (t) => {
  t.like(judge(answer(503), at(1)), { waitMs: minute });
  t.like(judge(answer(429, '90'), at(1)), { waitMs: 90 * second });
  t.like(judge(answer(429, '999999'), at(1)), { waitMs: 6 * hour });
  t.like(judge(answer(404), at(1)), { waitMs: 2 * minute });
  t.like(judge(answer(500), at(1)), { waitMs: 5 * second });
  t.is(readRetryAfter(new Date(now + 30_000).toUTCString(), now), 30_000);
  t.is(readRetryAfter('soon', now), 0);
});

test('fourteen attempts, the last within 72 hours, spread by a fifth', (t) => {
  let when = 0;
  for (let number = 1; number <= waitsMs.length; number++) {
    const judgement = judge(answer(500), at(number, { since: now - when }));
    if (judgement.kind !== 'again') return t.fail(`attempt ${number} was the last`);
    when += judgement.waitMs;
  }
  t.true(when <= deliverWithinMs);
  t.is(judge(answer(500), at(waitsMs.length + 1)).kind, 'over');
  t.is(judge(answer(500), at(3, { since: now - deliverWithinMs })).kind, 'over');
  t.like(judge(answer(500), at(4, { chance: 0 })), { waitMs: 4 * minute });
  t.like(judge(answer(500), at(4, { chance: 1 })), { waitMs: 6 * minute });
});
