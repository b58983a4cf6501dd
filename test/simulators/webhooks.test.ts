// Webhooks of the simulated WhatsApp: signed, batched, repeated until accepted, and the fields beside statuses.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { call, fieldsOf, graph, sendCode, startPair, statusesOf, whatsapp } from './harness.ts';

test('the signature is the HMAC of the raw bytes under the app secret', async (t) => {
  const { sim, receiver } = await startPair(t);
  await sendCode(sim, '14155550123');
  await receiver.until((received) => received.length === 1);
  const [one] = receiver.received;
  const raw = one?.raw ?? Buffer.alloc(0);
  const expected = createHmac('sha256', whatsapp.appSecret).update(raw).digest('hex');
  t.is(one?.path, '/v1/inbound/whatsapp');
  t.is(one?.headers['x-hub-signature-256'], `sha256=${expected}`);
  t.like(JSON.parse(raw.toString()), {
    object: 'whatsapp_business_account',
    entry: [{ id: whatsapp.wabaId }],
  });
});

test('statuses of many messages share few calls, at most 500 in one', async (t) => {
  const { sim, receiver } = await startPair(t, { statusBatchMs: 300 });
  const numbers = Array.from({ length: 300 }, (_, index) => String(14155570000 + index));
  await Promise.all(numbers.map((number) => sendCode(sim, number)));
  await receiver.until((received) => statusesOf(received).length === 600);
  t.true(receiver.received.length <= 8, `${receiver.received.length} calls`);
  for (const one of receiver.received) t.true(statusesOf([one]).length <= 500);
});

test('a refused call is repeated with the same bytes until it is accepted', async (t) => {
  const { sim, receiver } = await startPair(t);
  receiver.answer = () => (receiver.received.length < 3 ? 503 : 200);
  await sendCode(sim, '14155550123');
  await receiver.until((received) => statusesOf(received).length === 2);
  t.deepEqual(
    receiver.received.map(({ status }) => status),
    [503, 503, 503, 200],
  );
  t.is(new Set(receiver.received.map(({ raw }) => raw.toString())).size, 1);
  await sim.settled();
  t.like(sim.stats().webhooks.whatsapp, { refused_attempts: 3, accepted_events: 2, waiting: 0 });
});

test('without a receiver statuses wait, and come when it is there', async (t) => {
  const { sim, receiver } = await startPair(t, { apiUrl: 'http://127.0.0.1:9' });
  await sendCode(sim, '14155550123');
  await call(`${sim.url}/stats`);
  sim.setApiUrl(receiver.url);
  await receiver.until((received) => statusesOf(received).length === 2);
  t.pass();
});

test('a refused call does not hold up the next one', async (t) => {
  const { sim, receiver } = await startPair(t);
  receiver.answer = ({ raw }) => (raw.includes('first') ? 500 : 200);
  await sendCode(sim, '14155550123', '111111', 'first');
  await receiver.until((received) => received.length > 0);
  await sendCode(sim, '14155550124', '222222', 'second');
  await receiver.until((received) => statusesOf(received).length === 2);
  t.is(statusesOf(receiver.received)[0].biz_opaque_callback_data, 'second');
});

test('an account our app is not subscribed to stays silent', async (t) => {
  const { sim, receiver } = await startPair(t);
  t.deepEqual((await graph(sim, `${whatsapp.wabaId}/subscribed_apps`, 'DELETE')).body, {
    success: true,
  });
  await sendCode(sim, '14155550123');
  await graph(sim, `${whatsapp.wabaId}/subscribed_apps`, 'POST');
  await sendCode(sim, '14155550124', '222222', 'second');
  await receiver.until((received) => statusesOf(received).length === 2);
  await sim.settled();
  t.deepEqual(
    new Set(statusesOf(receiver.received).map((one) => one.recipient_id)),
    new Set(['14155550124']),
  );
});

test('a template is paused and reinstated, with the matching webhook', async (t) => {
  const { sim, receiver } = await startPair(t);
  const url = `${sim.url}/templates/otp_code/status`;
  const paused = await call(url, 'POST', { event: 'PAUSED', language: 'en_US' });
  t.like(paused.body.templates[0], { name: 'otp_code', status: 'PAUSED' });
  t.is((await sendCode(sim, '14155550123')).body.error.code, 132015);
  await call(url, 'POST', { event: 'REINSTATED' });
  t.is((await sendCode(sim, '14155550123')).status, 200);
  await receiver.until(
    (received) => fieldsOf(received, 'message_template_status_update').length === 2,
  );
  const updates = fieldsOf(receiver.received, 'message_template_status_update');
  const first = updates.find(({ event }) => event === 'PAUSED');
  t.like(first, {
    message_template_name: 'otp_code',
    message_template_language: 'en-US',
    reason: null,
  });
  t.is(typeof first.message_template_id, 'number');
  t.is((await call(url, 'POST', { event: 'SOLD' })).status, 400);
  t.is((await call(`${sim.url}/templates/none/status`, 'POST', { event: 'PAUSED' })).status, 404);
});

test('a banned account refuses sends with 368 until it is reinstated', async (t) => {
  const { sim, receiver } = await startPair(t);
  const ban = (state: string) =>
    call(`${sim.url}/businesses/${whatsapp.wabaId}/account-update`, 'POST', {
      event: 'DISABLED_UPDATE',
      ban_info: { waba_ban_state: state, waba_ban_date: 'November 20, 2026' },
    });
  await ban('DISABLE');
  t.is((await sendCode(sim, '14155550123')).body.error.code, 368);
  const health = await graph(sim, `${whatsapp.phoneNumberId}?fields=health_status`);
  t.is(health.body.health_status.can_send_message, 'BLOCKED');
  await ban('REINSTATE');
  t.is((await sendCode(sim, '14155550123')).status, 200);
  await receiver.until((received) => fieldsOf(received, 'account_update').length === 2);
  t.like(fieldsOf(receiver.received, 'account_update')[0], { event: 'DISABLED_UPDATE' });
});

test('the handshake of the callback is shaken with the verify token', async (t) => {
  const { sim, receiver } = await startPair(t);
  const { body } = await call(`${sim.url}/handshake`, 'POST', {});
  t.deepEqual(body, { status: 200, verified: true });
  const query = new URLSearchParams(receiver.received[0]?.path.split('?')[1]);
  t.is(query.get('hub.mode'), 'subscribe');
  t.is(query.get('hub.verify_token'), whatsapp.verifyToken);
  receiver.answer = () => 403;
  t.deepEqual((await call(`${sim.url}/handshake`, 'POST')).body, { status: 403, verified: false });
});
