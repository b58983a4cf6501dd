// The webhook receiver of the simulators: it verifies, remembers, and misbehaves as it is told.
import { createHmac } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { shared } from '../support/settings.ts';
import { createSimulators, type Simulators } from './server.ts';

const key = Buffer.from('a secret of twenty-four b');
let sim: Simulators;

test.before(async () => {
  const receiverSecretFile = join(mkdtempSync(join(tmpdir(), 'receiver-')), 'secret');
  writeFileSync(receiverSecretFile, `whsec_${key.toString('base64')}\n`);
  const options = { port: 0, apiUrl: 'http://127.0.0.1:9', receiverSecretFile };
  sim = await createSimulators({ ...options, ...shared });
});
test.after.always(() => sim?.close());

const post = (id: string, { attempt = 1, tampered = false } = {}) => {
  const body = JSON.stringify({ type: 'otp.sent', data: {} });
  const at = String(Math.floor(Date.now() / 1000));
  const signed = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  return fetch(`${sim.url}/receiver`, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(1_000),
    headers: {
      ...{ 'webhook-id': id, 'webhook-timestamp': at, 'tessera-attempt': String(attempt) },
      'webhook-signature': `v1,${tampered ? 'AAAA' : signed}`,
    },
    body,
  });
};

const behave = (behaviour: string) =>
  fetch(`${sim.url}/receiver/behaviour`, { method: 'PUT', body: JSON.stringify({ behaviour }) });

const events = async () => {
  const answer = await fetch(`${sim.url}/receiver/events`);
  return ((await answer.json()) as { events: Record<string, unknown>[] }).events;
};

test.serial('events are verified, counted by their id and kept, newest last', async (t) => {
  t.is((await post('evt_1')).status, 200);
  t.is((await post('evt_1', { attempt: 2 })).status, 200);
  t.is((await post('evt_2', { tampered: true })).status, 200);
  const all = await events();
  t.like(all[0], { id: 'evt_1', type: 'otp.sent', verified: true, attempt: 1, repeats: 0 });
  t.like(all[1], { id: 'evt_1', verified: true, attempt: 2, repeats: 1 });
  t.like(all[2], { id: 'evt_2', verified: false });
});

test.serial('it does what it is told, and refuses what it does not know', async (t) => {
  for (const [behaviour, status] of [
    ['failing', 500],
    ['busy', 503],
    ['redirecting', 302],
    ['gone', 410],
  ] as const) {
    t.is((await behave(behaviour)).status, 200);
    t.is((await post(`evt_${behaviour}`)).status, status);
  }
  await behave('silent');
  await t.throwsAsync(post('evt_silent'), { name: 'TimeoutError' });
  await behave('dripping');
  const dripping = await post('evt_dripping');
  t.is(dripping.status, 200);
  await t.throwsAsync(dripping.text(), { name: 'TimeoutError' });
  t.is((await behave('sleepy')).status, 400);
  await fetch(`${sim.url}/state`, { method: 'DELETE' });
  t.deepEqual(await events(), []);
  t.is((await post('evt_after')).status, 200);
});

test.serial('the page is served, and told of events as they come', async (t) => {
  const page = await fetch(`${sim.url}/receiver`);
  t.regex(page.headers.get('content-type') ?? '', /^text\/html/);
  const stream = await fetch(`${sim.url}/receiver/stream`);
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  await post('evt_live');
  let heard = '';
  while (!heard.includes('event: event')) heard += (await reader?.read())?.value ?? '';
  t.true(heard.includes('evt_live'));
  await reader?.cancel();
});
