// Counting around the rooms: what is counted under which name, and that nothing is changed by it.
import test from 'ava';
import type { ChannelResult } from '../../lib/channels/channel.ts';
import * as counting from '../../lib/counting.ts';
import type { EventWire } from '../../lib/jobs.ts';
import type { OutboundResult } from '../../lib/kernel/outbound.ts';
import { noTracing } from '../../lib/kernel/tracing.ts';
import { createMetrics } from '../../lib/pulse/metrics.ts';

/** Metrics, and the lines of those whose name begins so and that are not 0. */
const counted = () => {
  const metrics = createMetrics();
  const lines = async (name: string): Promise<string[]> => {
    const text = await metrics.registry.metrics();
    return text.split('\n').filter((line) => line.startsWith(name) && !line.endsWith(' 0'));
  };
  return { metrics, lines };
};

const event = (type: string, channel: string | null): EventWire =>
  ({ type, mode: 'live', data: { channel } }) as unknown as EventWire;

test('what becomes of messages is counted by the events that were published', async (t) => {
  const { metrics, lines } = counted();
  let away = false;
  const announce = () => (away ? Promise.reject(new Error('away')) : Promise.resolve());
  const announcer = counting.countSends(metrics, { announce, drain: () => Promise.resolve() });
  await announcer.announce(event('otp.sent', 'whatsapp'));
  await announcer.announce(event('otp.failed', null));
  await announcer.announce(event('totp.enrolled', null));
  away = true;
  await t.throwsAsync(announcer.announce(event('otp.sent', 'whatsapp')));
  t.deepEqual(await lines('tessera_sends_total'), [
    'tessera_sends_total{channel="whatsapp",outcome="accepted",mode="live"} 1',
    'tessera_sends_total{channel="none",outcome="failed",mode="live"} 1',
  ]);
});

test('a provider’s answers are counted by their class, our own mistakes apart', async (t) => {
  const { metrics, lines } = counted();
  const results: (ChannelResult | Error)[] = [
    { kind: 'accepted', providerId: 'x' },
    { kind: 'refused', refusal: 'throttle', code: 130429 },
    { kind: 'unknown', detail: 'HTTP 500' },
    new Error('ours'),
  ];
  const send = () => {
    const next = results.shift();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next as ChannelResult);
  };
  const whatsapp = counting.timeWhatsapp({ metrics, tracing: noTracing }, { send });
  const call = () => whatsapp.send({} as never);
  t.like(await call(), { kind: 'accepted', providerId: 'x' });
  t.like(await call(), { refusal: 'throttle' });
  t.like(await call(), { kind: 'unknown' });
  await t.throwsAsync(call(), { message: 'ours' });
  t.deepEqual(
    (await lines('tessera_provider_duration_seconds_count')).map((line) =>
      line.replace(/.*outcome="(\w+)".* /, '$1 '),
    ),
    ['accepted 1', 'throttle 1', 'unknown 1', 'bug 1'],
  );
});

test('webhook attempts are counted by class of status or the reason of no answer', async (t) => {
  const { metrics, lines } = counted();
  const results: OutboundResult[] = [
    { kind: 'answer', status: 204, retryAfter: undefined, durationMs: 12 },
    { kind: 'answer', status: 503, retryAfter: undefined, durationMs: 12 },
    { kind: 'none', reason: 'dns', durationMs: 3 },
  ];
  const outbound = counting.timeWebhooks(metrics, {
    post: () => Promise.resolve(results.shift() as OutboundResult),
    close: () => Promise.resolve(),
  } as never);
  const call = { accountId: '', url: 'https://x', headers: {}, body: '' };
  for (let number = 0; number < 3; number++) await outbound.post(call);
  t.deepEqual(await lines('tessera_webhook_attempt_duration_seconds_count'), [
    'tessera_webhook_attempt_duration_seconds_count{result="2xx"} 1',
    'tessera_webhook_attempt_duration_seconds_count{result="5xx"} 1',
    'tessera_webhook_attempt_duration_seconds_count{result="dns"} 1',
  ]);
});

test('postings, keys, holds and attempts are counted by what came of them', async (t) => {
  const { metrics, lines } = counted();
  const answers = ['posted', 'known', 'no_account'];
  const poster = counting.countPostings(metrics, {
    post: () => Promise.resolve({ posted: answers.shift() }),
    drain: () => Promise.resolve(),
  } as never);
  for (let call = 0; call < 3; call++) await poster.post({ kind: 'charge' } as never);
  t.deepEqual(await lines('tessera_ledger_postings_total'), [
    'tessera_ledger_postings_total{kind="charge"} 1',
  ]);

  const keys = counting.countIdempotency(metrics, {
    begin: () => Promise.resolve({ kind: 'in_progress' }),
  } as never);
  await keys.begin({} as never);
  t.deepEqual(await lines('tessera_idempotency_total'), [
    'tessera_idempotency_total{outcome="conflict"} 1',
  ]);

  const held = [true, false];
  const evidence = counting.countHolds(metrics, {
    hold: () => Promise.resolve(held.shift()),
  } as never);
  await evidence.hold({} as never, undefined, {} as never);
  await evidence.hold({} as never, undefined, {} as never);
  t.deepEqual(await lines('tessera_pumping_decisions_total'), [
    'tessera_pumping_decisions_total{decision="held"} 1',
  ]);

  const attempts = counting.countTotp(metrics, {
    record: (attempt: object) => Promise.resolve(attempt),
  } as never);
  await attempts.record({ status: 'verified', reason: null } as never);
  await attempts.record({ status: 'failed', reason: 'used_code' } as never);
  t.deepEqual(await lines('tessera_verify_total'), [
    'tessera_verify_total{method="totp",result="verified"} 1',
    'tessera_verify_total{method="totp",result="used_code"} 1',
  ]);
});

test('a job’s wait is that of its first attempt', async (t) => {
  const { metrics, lines } = counted();
  const job = { job: 'whatsapp.send', outcome: 'done', ms: 5, waitedMs: 40 } as const;
  const settled = (attempt: number) =>
    ({ ...job, meta: { attempt, firstPublishedAtMs: 1 } }) as never;
  counting.countJob(metrics, settled(1));
  counting.countJob(metrics, settled(2));
  t.deepEqual(await lines('tessera_job_wait_seconds_count'), [
    'tessera_job_wait_seconds_count{queue="whatsapp.send"} 1',
  ]);
  t.deepEqual(await lines('tessera_job_duration_seconds_count'), [
    'tessera_job_duration_seconds_count{queue="whatsapp.send",outcome="done"} 2',
  ]);
});

test('the proof of the books is there from the first one on', async (t) => {
  const { metrics, lines } = counted();
  t.deepEqual(await lines('tessera_reconcile'), []);
  metrics.reconciled(2, 5_000);
  metrics.recounted(1);
  t.deepEqual(await lines('tessera_reconcile'), [
    'tessera_reconcile_mismatches 2',
    'tessera_reconcile_timestamp_seconds 5',
  ]);
  t.deepEqual(await lines('tessera_rollup_drift'), ['tessera_rollup_drift 1']);
});
