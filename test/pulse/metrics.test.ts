// The metrics of the whole product: what is counted, under which labels, and that there are few of them.
import anyTest, { type TestFn } from 'ava';
import { metricsText } from '../../lib/pulse/merge.ts';
import type { SeenPulse } from '../../lib/pulse/rules.ts';
import { seedAccounts } from '../bench/accounts.ts';
import { createClient } from '../support/client.ts';
import { promtoolPath, promtoolSays } from '../support/promtool.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

const test = anyTest.serial as TestFn;

let stack: Stack;
test.before(async () => {
  stack = await startStack('metrics', { settings: { FRAUD_GUARD: 'off' } });
});
test.after.always(() => stack.close());

/** The page as the ops listener serves it, from what the processes hold at this moment. */
const page = async (): Promise<string> => {
  const pulses = await Promise.all(
    [stack.api, stack.worker].map(async ({ metrics }, index) => ({
      ...{ id: ['api@h:1', 'workers@h:2'][index], state: 'alive', startedAt: 0 },
      metrics: await metrics.registry.getMetricsAsJSON(),
    })),
  );
  return metricsText(pulses as unknown as SeenPulse[]);
};

const seriesOf = (text: string): string[] =>
  text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

const has = (text: string, series: RegExp, t: { regex(s: string, r: RegExp): void }): void =>
  t.regex(text, series);

test('a send and its verification are counted at every step', async (t) => {
  const { live } = await stack.customer();
  const phone = stack.phone();
  const key = { 'Idempotency-Key': 'once' };
  await live.send(phone.number, key);
  const replay = await live.send(phone.number, key);
  t.is(replay.status, 200);
  const refused = await live.send(phone.number);
  t.is(refused.status, 429);
  t.is((await live.verify(phone.number, await phone.code())).status, 200);
  const text = await eventually(t, async () => {
    const now = await page();
    const settled = /tessera_ledger_postings_total\{kind="charge",[^}]*\} [1-9]/.test(now);
    return settled ? now : undefined;
  });
  for (const series of [
    /tessera_http_request_duration_seconds_count\{method="POST",route="\/v1\/otp\/send",status="2xx",process="api@h:1"\} 2\n/,
    /tessera_http_request_duration_seconds_count\{method="POST",route="\/v1\/otp\/send",status="4xx",process="api@h:1"\} 1\n/,
    /tessera_http_errors_total\{code="RATE_LIMIT_EXCEEDED",process="api@h:1"\} 1\n/,
    /tessera_admission_rejected_total\{dimension="recipient",reason="cooldown",process="api@h:1"\} 1\n/,
    /tessera_idempotency_total\{outcome="new",process="api@h:1"\} 1\n/,
    /tessera_idempotency_total\{outcome="replay",process="api@h:1"\} 1\n/,
    /tessera_sends_total\{channel="whatsapp",outcome="accepted",mode="live",process="workers@h:2"\} 1\n/,
    /tessera_verify_total\{method="otp",result="verified",process="api@h:1"\} 1\n/,
    /tessera_provider_duration_seconds_count\{provider="whatsapp",outcome="accepted",process="workers@h:2"\} 1\n/,
    /tessera_job_duration_seconds_count\{queue="whatsapp.send",outcome="done",process="workers@h:2"\} 1\n/,
    /tessera_job_wait_seconds_count\{queue="whatsapp.send",process="workers@h:2"\} 1\n/,
    /tessera_publishes_total\{queue="whatsapp.send",process="api@h:1"\} 1\n/,
    /tessera_jobs_total\{queue="whatsapp.send",process="workers@h:2"\} 1\n/,
    /tessera_retries_total\{queue="whatsapp.send",process="workers@h:2"\} 0\n/,
    /tessera_dead_total\{queue="telegram.send",process="workers@h:2"\} 0\n/,
    /tessera_engine_connected\{engine="redis",process="api@h:1"\} 1\n/,
    /tessera_outages_total\{engine="mysql",process="api@h:1"\} 0\n/,
    /tessera_mysql_pool_connections\{state="waiting",process="api@h:1"\} 0\n/,
    /tessera_event_loop_delay_p99_seconds\{process="api@h:1"\} /,
    /tessera_argon2_queue\{process="api@h:1"\} 0\n/,
  ]) {
    has(text, series, t);
  }
});

test('hundreds of accounts make no more series than one', async (t) => {
  const { keys, ids } = await seedAccounts(stack.api.db, 200);
  const sendAll = async (of: readonly string[], first: number): Promise<void> => {
    await Promise.all(
      of.map(async (key, index) => {
        const client = createClient(stack.url, key);
        const phone = `+1415${String(first + index).padStart(7, '2')}`;
        const sent = await client.send(phone);
        t.is(sent.status, 200);
        await client.verify(phone, '123456');
        await client.get(`/v1/otp/status/${String(sent.data.message_id)}`);
        await client.get(`/nothing/${phone}`);
      }),
    );
  };
  await sendAll(keys.slice(0, 1), 2_000_000);
  const withOne = new Set(
    seriesOf(await page()).map((line) => line.slice(0, line.lastIndexOf(' '))),
  );
  for (let at = 1; at < keys.length; at += 100) {
    await sendAll(keys.slice(at, at + 100), 2_100_000 + at);
  }
  const text = await page();
  const withAll = seriesOf(text).map((line) => line.slice(0, line.lastIndexOf(' ')));
  // What had not happened yet by the first account (a code that failed, a queue that came later) may be new.
  t.true(withAll.length < withOne.size + 120, `${withOne.size} series became ${withAll.length}`);
  t.true(withAll.length < 1_500, String(withAll.length));
  t.log(`${withOne.size} series after one account, ${withAll.length} after ${keys.length}`);
  for (const id of ids) t.false(text.includes(id));
  t.notRegex(text, /\+?1415\d{7}/);
  t.notRegex(text, /otp_|sk_live/);
});

(promtoolPath() ? test : test.skip)('promtool check metrics finds nothing to say', async (t) => {
  t.is(promtoolSays(['metrics'], await page()), '');
});
