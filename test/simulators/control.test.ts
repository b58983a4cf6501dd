// The control API and the page: behaviours, counters, reset, live events, and input that makes no sense.
import { connect } from 'node:net';
import test from 'ava';
import { call, graph, sendCode, startPair, statusesOf, whatsapp } from './harness.ts';

const phone = '+14155550123';

test('messages are listed newest first, with and without the plus, encoded or not', async (t) => {
  const { sim } = await startPair(t);
  await sendCode(sim, '14155550123', '111111');
  await sendCode(sim, '+14155550123', '222222');
  for (const path of [phone, '14155550123', encodeURIComponent(phone)]) {
    const { body } = await call(`${sim.url}/phones/${path}/messages`);
    t.deepEqual(
      body.messages.map(({ code }: { code: string }) => code),
      ['222222', '111111'],
    );
    t.deepEqual(Object.keys(body.messages[0]), [
      'channel',
      'code',
      'text',
      'at',
      'phone_number_id',
    ]);
  }
  t.deepEqual((await call(`${sim.url}/phones/+14155550199/messages`)).body, { messages: [] });
});

test('what does not reach the phone is not on it', async (t) => {
  const { sim } = await startPair(t);
  for (const whatsappBehaviour of ['unreachable_async', 'unreachable_sync', 'silent']) {
    sim.phones.behave(phone, { whatsapp: whatsappBehaviour });
    await sendCode(sim, '14155550123');
  }
  t.deepEqual((await call(`${sim.url}/phones/${phone}/messages`)).body.messages, []);
});

test('a behaviour is set, kept beside the others, and shown', async (t) => {
  const { sim } = await startPair(t);
  const url = `${sim.url}/phones/${phone}/behaviour`;
  t.deepEqual((await call(url)).body, { whatsapp: 'ok', telegram: 'ok', delay_ms: null });
  await call(url, 'PUT', { whatsapp: 'silent' });
  await call(url, 'PUT', { telegram: 'blocked', delay_ms: 20 });
  t.deepEqual((await call(url)).body, { whatsapp: 'silent', telegram: 'blocked', delay_ms: 20 });
});

test('a behaviour for all phones gives way to a phone of its own', async (t) => {
  const { sim } = await startPair(t);
  sim.phones.behave('+14155550124', { whatsapp: 'ok' });
  await call(`${sim.url}/behaviour`, 'PUT', { whatsapp: 'http_500' });
  t.is((await sendCode(sim, '14155550123')).status, 500);
  t.is((await sendCode(sim, '14155550124')).status, 200);
  const { body } = await call(`${sim.url}/behaviour`);
  t.is(body.all.whatsapp, 'http_500');
  t.true(body.allowed.whatsapp.includes('accept_then_drop'));
});

test('an unknown behaviour is refused with what is allowed', async (t) => {
  const { sim } = await startPair(t);
  const url = `${sim.url}/phones/${phone}/behaviour`;
  const refused = [
    { whatsapp: 'asleep' },
    { whatsapp: 'error:7' },
    { whatsapp: 'constructor' },
    { telegram: 1 },
    { delay_ms: -1 },
    { mood: 'ok' },
  ];
  for (const body of refused) t.is((await call(url, 'PUT', body)).status, 400);
  const { body } = await call(url, 'PUT', { whatsapp: 'asleep' });
  t.regex(body.error, /unreachable_async.*error:<code>/);
});

test('calls are counted by provider and outcome, messages by their id', async (t) => {
  const { sim } = await startPair(t);
  await sendCode(sim, '14155550123', '111111', 'otp_a');
  await sendCode(sim, '14155550123', '111111', 'otp_a');
  sim.phones.behave('+14155550124', { whatsapp: 'silent' });
  await sendCode(sim, '14155550124', '111111', 'otp_b');
  sim.phones.behave('+14155550125', { whatsapp: 'rate_limited' });
  await sendCode(sim, '14155550125', '111111', 'otp_c');
  await graph(sim, whatsapp.wabaId);
  const { body } = await call(`${sim.url}/stats`);
  t.like(body.whatsapp, { accepted: 3, delivered: 2, error_130429: 1 });
  t.like(body.whatsapp_management, { 'GET node': 1 });
  const counts = await call(`${sim.url}/stats/messages`);
  t.deepEqual(counts.body, { messages: { otp_a: [2, 2], otp_b: [1, 0] }, telegram: {} });
  const doubled = await call(`${sim.url}/stats/messages?over=1`);
  t.deepEqual(doubled.body.messages, { otp_a: [2, 2] });
});

test('the counts of many messages are streamed', async (t) => {
  const { sim } = await startPair(t, { autoDeliver: false });
  const total = 2500;
  for (let start = 0; start < total; start += 50) {
    const part = Array.from({ length: 50 }, (_, index) => start + index);
    await Promise.all(
      part.map((n) => sendCode(sim, String(14155600000 + n), '111111', `otp_${n}`)),
    );
  }
  const { body } = await call(`${sim.url}/stats/messages`);
  t.is(Object.keys(body.messages).length, total);
});

test('a reset forgets phones, behaviours, counters, accounts and waiting webhooks', async (t) => {
  const { sim, receiver } = await startPair(t);
  receiver.answer = () => 500;
  await sendCode(sim, '14155550123');
  await receiver.until((received) => received.length > 0);
  await call(`${sim.url}/behaviour`, 'PUT', { whatsapp: 'http_500' });
  const made = await call(`${sim.url}/businesses`, 'POST', {});
  t.is((await call(`${sim.url}/state`, 'DELETE')).status, 200);
  // A call that was on its way at the reset still meets the old answer.
  await sim.settled();
  receiver.answer = () => 200;
  t.deepEqual(sim.phones.messages(phone), []);
  t.deepEqual(sim.stats().whatsapp, {});
  t.is((await call(`${sim.url}/businesses/${made.body.waba_id}/code`, 'POST')).status, 404);
  t.is((await sendCode(sim, '14155550124', '222222', 'after')).status, 200);
  await receiver.until((received) => statusesOf(received).length === 2);
  await sim.settled();
  t.true(statusesOf(receiver.received).every((one) => one.biz_opaque_callback_data === 'after'));
});

test('input that makes no sense is answered with an error, and the next call works', async (t) => {
  const { sim } = await startPair(t);
  const answers = await Promise.all([
    call(`${sim.url}/nowhere`),
    call(`${sim.url}/stats`, 'POST'),
    call(`${sim.url}/phones/123/messages`),
    call(`${sim.url}/phones/%E0%A4%A/messages`),
    call(`${sim.url}/phones/${phone}/behaviour`, 'PUT', '[1]'),
    call(`${sim.url}/phones/${phone}/behaviour`, 'PUT', '{"a'),
    call(`${sim.url}/phones/${phone}/behaviour`, 'PUT', 'x'.repeat(2 << 20)),
    call(`${sim.url}/graph/nonsense`, 'POST', '{}'),
    call(`${sim.url}/telegram/`, 'POST', '{}'),
    call(`${sim.url}/businesses`, 'POST', { waba_id: 5 }),
    call(`${sim.url}/phones/${phone}/status`, 'POST', { status: 'sent' }),
    call(`${sim.url}/stats/messages?over=x`),
  ]);
  t.deepEqual(
    answers.map(({ status }) => status),
    [404, 405, 400, 400, 400, 400, 413, 400, 404, 400, 404, 400],
  );
  for (const { body } of answers.slice(0, 7)) t.is(typeof body.error, 'string');
  await new Promise<void>((resolve) => {
    const socket = connect(sim.port, '127.0.0.1', () => socket.end('nonsense\r\n\r\n'));
    socket.on('error', () => undefined).on('close', () => resolve());
    socket.resume();
  });
  t.is((await call(`${sim.url}/stats`)).status, 200);
});

test('the page is there, and its events tell of messages, behaviours and resets', async (t) => {
  const { sim } = await startPair(t);
  const page = await call(`${sim.url}/`);
  t.regex(page.body, /Simulated phones/);
  t.notRegex(page.body, /<(script|link|img)[^>]+(src|href)="https?:/);
  await sendCode(sim, '14155550123', '111111');

  const response = await fetch(`${sim.url}/events`);
  t.teardown(() => response.body?.cancel().catch(() => undefined));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let heard = '';
  const hear = async (part: string) => {
    while (!heard.includes(part)) heard += (await reader?.read())?.value ?? '';
  };
  await hear('111111');
  t.regex(heard, /event: snapshot/);
  await sendCode(sim, '14155550124', '222222');
  sim.phones.behave(phone, { whatsapp: 'silent' });
  await hear('"code":"222222"');
  await hear('"whatsapp":"silent"');
  sim.reset();
  await hear('"kind":"reset"');
  await reader?.cancel();
});
