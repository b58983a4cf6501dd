// POST messages: what Meta checks, and every behaviour of a phone with its answer, arrival and receipts.
import test from 'ava';
import {
  bearer,
  call,
  graph,
  sendCode,
  startPair,
  statusesOf,
  templateMessage,
  whatsapp,
} from './harness.ts';
import { whatsappPlans } from './plans.ts';
import { errorTitle, knownErrorCodes } from './whatsapp-errors.ts';

const messages = `${whatsapp.phoneNumberId}/messages`;
const phone = '+14155550123';

test('a message is answered, arrives and is reported sent and delivered with our echo', async (t) => {
  const { sim, receiver } = await startPair(t);
  const { status, body } = await sendCode(sim, '14155550123', '493027', 'otp_7:1');
  t.is(status, 200);
  t.deepEqual(body.contacts, [{ input: '14155550123', wa_id: '14155550123' }]);
  t.regex(body.messages[0].id, /^wamid\./);
  t.is(body.messages[0].message_status, 'accepted');
  t.like(sim.phones.messages(phone)[0], { channel: 'whatsapp', code: '493027' });
  await receiver.until((received) => statusesOf(received).length === 2);
  const [sent, delivered] = statusesOf(receiver.received);
  t.like(sent, { id: body.messages[0].id, status: 'sent', recipient_id: '14155550123' });
  t.like(delivered, { status: 'delivered', biz_opaque_callback_data: 'otp_7:1' });
  t.like(delivered.pricing, { type: 'regular', category: 'authentication' });
  t.is(typeof delivered.timestamp, 'string');
  t.false('conversation' in delivered);
  t.deepEqual(sim.messageCount('otp_7:1'), { accepted: 1, delivered: 1 });
});

type Change = (body: ReturnType<typeof templateMessage>) => unknown;
const [bodyPart, buttonPart] = templateMessage('1').template.components;
const components =
  (...parts: unknown[]): Change =>
  (body) => ({
    ...body,
    template: { ...body.template, components: parts },
  });

const refused: [title: string, change: Change, http: number, code: number][] = [
  ['unknown top-level field', (body) => ({ ...body, ttl: 3 }), 400, 100],
  ['no messaging_product', ({ messaging_product: _, ...body }) => body, 400, 100],
  ['no recipient', ({ to: _, ...body }) => body, 400, 131008],
  ['malformed recipient', (body) => ({ ...body, to: '0123' }), 400, 131009],
  ['recipient is the sender', (body) => ({ ...body, to: '15550783881' }), 400, 131021],
  [
    'unknown template',
    (body) => ({ ...body, template: { ...body.template, name: 'other' } }),
    404,
    132001,
  ],
  [
    'unknown language',
    (body) => ({ ...body, template: { ...body.template, language: { code: 'de' } } }),
    404,
    132001,
  ],
  ['no body parameter', components({ type: 'body', parameters: [] }, buttonPart), 400, 132000],
  ['no button parameter', components(bodyPart), 400, 132012],
  ['code too long', (body) => templateMessage(body.to, '1234567890123456'), 400, 132005],
  ['media', (body) => ({ ...body, type: 'image' }), 400, 131051],
  ['not JSON', () => '{', 400, 100],
];

for (const [title, change, http, code] of refused) {
  test(`refused: ${title}`, async (t) => {
    const { sim } = await startPair(t);
    const { status, body } = await graph(
      sim,
      messages,
      'POST',
      change(templateMessage('14155550123')),
    );
    t.is(status, http);
    t.is(body.error.code, code);
    t.true(typeof body.error.message === 'string' && typeof body.error.type === 'string');
    t.deepEqual(sim.phones.messages(phone), []);
  });
}

test('a token that is wrong or missing is 190, a number of somebody else 100 with subcode 33', async (t) => {
  const { sim } = await startPair(t);
  const url = `${sim.url}/graph/v25.0/${messages}`;
  for (const headers of [bearer('other'), {}]) {
    const { status, body } = await call(url, 'POST', templateMessage('14155550123'), headers);
    t.is(status, 401);
    t.is(body.error.code, 190);
  }
  const { status, body } = await graph(sim, '999/messages', 'POST', templateMessage('14155550123'));
  t.is(status, 400);
  t.like(body.error, { code: 100, error_subcode: 33 });
  t.is(body.error.error_data, undefined);
});

test('free text is accepted and then fails with 131047: no window is open', async (t) => {
  const { sim, receiver } = await startPair(t);
  const text = {
    messaging_product: 'whatsapp',
    to: '14155550123',
    type: 'text',
    text: { body: 'Hi' },
  };
  t.is((await graph(sim, messages, 'POST', text)).status, 200);
  await receiver.until((received) => statusesOf(received).length === 1);
  t.is(statusesOf(receiver.received)[0].errors[0].code, 131047);
});

const quick = Object.entries(whatsappPlans).filter(([, plan]) => plan.answer !== 'hold');

for (const [name, plan] of quick) {
  test(`behaviour ${name}: ${plan.about}`, async (t) => {
    const { sim, receiver } = await startPair(t);
    sim.phones.behave(phone, { whatsapp: name, delay_ms: 20 });
    const answer = await sendCode(sim, '14155550123', '493027', 'otp_9').catch(() => undefined);
    if (plan.answer === 'ok')
      t.is(answer?.body.messages[0].message_status, plan.messageStatus ?? 'accepted');
    else if (plan.answer === 'error') t.is(answer?.body.error.code, plan.error);
    else if (plan.answer === 'html_502') t.is(answer?.status, 502);
    else t.is(answer, undefined);
    const expected = plan.steps.flatMap(({ status, times = 1 }) => Array(times).fill(status));
    await receiver.until((received) => statusesOf(received).length >= expected.length);
    await sim.settled();
    const statuses = statusesOf(receiver.received);
    t.deepEqual(statuses.map(({ status }) => status).sort(), expected.sort());
    for (const { status, errors, pricing } of statuses) {
      t.is(errors !== undefined, status === 'failed');
      t.is(pricing !== undefined, status === 'sent' || status === 'delivered');
    }
    const count = { accepted: plan.accepted ? 1 : 0, delivered: plan.arrives ? 1 : 0 };
    t.deepEqual(sim.messageCount('otp_9'), count);
    t.is(sim.phones.messages(phone).length, count.delivered);
  });
}

test('behaviour timeout: no answer and nothing sent; accept_then_hang: no answer, but delivered', async (t) => {
  const { sim } = await startPair(t);
  sim.phones.behave(phone, { whatsapp: 'timeout', delay_ms: 60 });
  await t.throwsAsync(sendCode(sim, '14155550123', '111111', 'lost'));
  sim.phones.behave(phone, { whatsapp: 'accept_then_hang' });
  await t.throwsAsync(sendCode(sim, '14155550123', '222222', 'kept'));
  t.deepEqual(sim.messageCount('lost'), { accepted: 0, delivered: 0 });
  t.deepEqual(sim.messageCount('kept'), { accepted: 1, delivered: 1 });
  t.deepEqual(
    sim.phones.messages(phone).map(({ code }) => code),
    ['222222'],
  );
});

test('early_statuses: the receipts are accepted before the call is answered', async (t) => {
  const { sim, receiver } = await startPair(t);
  // The answer waits for the receipts as long as a slow machine takes.
  sim.phones.behave(phone, { whatsapp: 'early_statuses', delay_ms: 60_000 });
  let early = 0;
  const answer = sendCode(sim, '14155550123').then(() => {
    early = statusesOf(receiver.received).length;
  });
  await answer;
  t.is(early, 2);
});

test('error:<code> answers every code of the table, failed:<code> reports it', async (t) => {
  const { sim, receiver } = await startPair(t);
  for (const [index, code] of knownErrorCodes.entries()) {
    const digits = String(14155560000 + index);
    sim.phones.behave(digits, { whatsapp: `error:${code}` });
    t.is((await sendCode(sim, digits)).body.error.code, code);
    sim.phones.behave(digits, { whatsapp: `failed:${code}` });
    t.is((await sendCode(sim, digits)).status, 200);
  }
  await receiver.until((received) => statusesOf(received).length === knownErrorCodes.length);
  const reported = statusesOf(receiver.received).map(({ errors }) => errors[0]);
  t.deepEqual(new Set(reported.map(({ code }) => code)), new Set(knownErrorCodes));
  for (const { code, title, message } of reported) {
    t.is(title, errorTitle(code));
    t.is(message, title);
  }
});

test('delay_ms holds back arrival and delivered, not the answer and sent', async (t) => {
  const { sim, receiver } = await startPair(t);
  sim.phones.behave(phone, { delay_ms: 3_000 });
  await sendCode(sim, '14155550123');
  t.deepEqual(sim.phones.messages(phone), []);
  await receiver.until((received) => statusesOf(received).length === 1);
  t.is(statusesOf(receiver.received)[0].status, 'sent');
  t.deepEqual(sim.phones.messages(phone), []);
  await receiver.until((received) => statusesOf(received).length === 2);
  t.is(sim.phones.messages(phone).length, 1);
});

test('autoDeliver off: the message arrives, receipts come by hand alone', async (t) => {
  const { sim, receiver } = await startPair(t, { autoDeliver: false });
  await sendCode(sim, '14155550123');
  t.is(sim.phones.messages(phone).length, 1);
  await call(`${sim.url}/phones/${phone}/status`, 'POST', { status: 'read' });
  await receiver.until((received) => statusesOf(received).length === 1);
  t.is(statusesOf(receiver.received)[0].status, 'read');
});
