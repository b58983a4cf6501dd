// Telegram's webhook: its secret, updates nobody understands, repeated ones, foreign contacts, and a blocked bot.
import test, { type ExecutionContext } from 'ava';
import { day } from '../../lib/kernel/clock.ts';
import { inChat, linkTelegram } from '../support/control.ts';
import { createHandClock } from '../support/hand-clock.ts';
import type { TestPhone } from '../support/phones.ts';
import { openQueues, type Queues, settled } from '../support/queues.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let customer: Customer;
let queues: Queues;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('intg', { clock });
  customer = await stack.customer();
  queues = await openQueues(stack.config.amqpUrls);
});
test.after.always(async () => {
  await queues?.close();
  await stack?.close();
});

const path = '/v1/inbound/telegram';

const post = (body: unknown, secret: string | undefined = shared.telegram.webhookSecret) =>
  sendRaw(stack.url, {
    ...{ method: 'POST', path },
    headers: [
      ['Content-Type', 'application/json'],
      ...(secret === undefined ? [] : [['X-Telegram-Bot-Api-Secret-Token', secret] as const]),
    ],
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });

let updateId = 1;
const userId = 5_550_001;
const message = (content: object, more: { chat?: object; from?: object } = {}) => ({
  update_id: updateId++,
  message: {
    ...{ message_id: 7, date: 1_750_030_073 },
    from: { id: userId, is_bot: false, first_name: 'Sam', language_code: 'en', ...more.from },
    chat: { id: userId, type: 'private', ...more.chat },
    ...content,
  },
});

const tokenOf = (url: unknown): string => new URL(String(url)).searchParams.get('start') ?? '';

/** A phone that WhatsApp does not reach, with the link it was refused with. */
const refusedPhone = async (t: ExecutionContext): Promise<{ phone: TestPhone; url: string }> => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED', refused.text);
  return { phone, url: String(refused.error.telegram_bot_url) };
};

const isLinked = async ({ number: phone }: TestPhone): Promise<boolean> => {
  const recipient = { accountId: customer.accountId, mode: 'live' as const, phone };
  const key = stack.api.recipients.ofRecipient(customer.accountId, 'live', phone);
  return (await stack.api.links.chatOf(recipient, key)) !== undefined;
};

test.serial('without the secret it is 403', async (t) => {
  const update = message({ text: '/start' });
  for (const secret of ['', 'wrong', `${shared.telegram.webhookSecret}x`]) {
    const refused = await post(update, secret);
    t.is(refused.status, 403);
    t.is(refused.body, '');
  }
  const bare = await sendRaw(stack.url, { method: 'POST', path, body: JSON.stringify(update) });
  t.is(bare.status, 403);
});

test.serial('updates that it does not understand are 200, and nothing comes of them', async (t) => {
  const hostile = { toString: 1, valueOf: 1 };
  const odd: unknown[] = [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    Buffer.from([0xff, 0xfe]),
    {},
    { update_id: 'one' },
    { update_id: 1 },
    { update_id: 1.5, message: {} },
    { update_id: 2, message: null },
    { update_id: 2, message: [] },
    { update_id: 2, message: 'text' },
    { update_id: 2, edited_message: { text: '/start x' } },
    { update_id: 2, channel_post: { text: '/start x' } },
    { update_id: 2, callback_query: { id: '1' } },
    { update_id: 2, my_chat_member: {} },
    { update_id: 2, my_chat_member: { chat: { id: 1 }, from: {} } },
    message({ text: '/start x' }, { from: { is_bot: true } }),
    message({ text: '/start x' }, { chat: { id: 'one' } }),
    message({ text: '/start x' }, { chat: { id: 2 ** 60 } }),
    message({ text: hostile, contact: { phone_number: hostile, user_id: userId } }),
  ];
  for (const body of odd) {
    const answer = await post(body);
    t.is(answer.status, 200, `${String(JSON.stringify(body)).slice(0, 100)}: ${answer.body}`);
  }
  await settled(t, stack, queues);
  t.is(await queues.depth('telegram.update.dead'), 0);
});

test.serial(
  'in a group, as a bot or from another private chat a start links nothing',
  async (t) => {
    const { phone, url } = await refusedPhone(t);
    const text = `/start ${tokenOf(url)}`;
    for (const type of ['group', 'supergroup', 'channel', undefined]) {
      t.is((await post(message({ text }, { chat: { id: -100_123, type } }))).status, 200);
    }
    t.is((await post(message({ text }, { from: { is_bot: true } }))).status, 200);
    await settled(t, stack, queues);
    t.false(await isLinked(phone));
    await phone.tap(url);
    t.true(await isLinked(phone), 'the link was not used up');
  },
);

const contacts: [what: string, contact: (own: string) => unknown][] = [
  ['another’s card', () => stack.phone().number],
  ['a card without a user', (own) => ({ phone_number: own, user_id: 'none' })],
  ['a card of another user', (own) => ({ phone_number: own, user_id: 4_711 })],
  ['the own card, forwarded', (own) => ({ phone_number: own, user_id: 'own', forwarded: true })],
];

for (const [what, contact] of contacts) {
  test.serial(`${what} proves nothing; the own card afterwards does`, async (t) => {
    const { phone, url } = await refusedPhone(t);
    await phone.tap(url, null);
    await inChat(stack.sim.url, phone, 'contact', { contact: contact(phone.number) });
    await settled(t, stack, queues);
    t.false(await isLinked(phone));
    t.deepEqual(await phone.messages(), []);
    await inChat(stack.sim.url, phone, 'contact');
    await eventually(t, async () => (await phone.code()) || undefined);
    t.true(await isLinked(phone));
  });
}

test.serial('a contact that nobody asked for links nothing', async (t) => {
  const phone = stack.phone();
  await inChat(stack.sim.url, phone, 'contact');
  await settled(t, stack, queues);
  t.false(await isLinked(phone));
  t.deepEqual(await phone.messages(), []);
});

test.serial('repeated updates send no second code', async (t) => {
  const { phone, url } = await refusedPhone(t);
  await phone.tap(url);
  const code = await eventually(t, async () => (await phone.code()) || undefined);
  for (let again = 0; again < 3; again++) await inChat(stack.sim.url, phone, 'repeat');
  await settled(t, stack, queues);
  t.is((await phone.messages()).length, 1);
  await inChat(stack.sim.url, phone, 'text', { text: `/start ${tokenOf(url)}` });
  await inChat(stack.sim.url, phone, 'repeat');
  await settled(t, stack, queues);
  t.is((await phone.messages()).length, 1, 'the link is used up');
  t.is((await customer.live.verify(phone.number, code)).status, 200);
});

test.serial(
  'a start that is delivered twice before the contact is one link and one code',
  async (t) => {
    const { phone, url } = await refusedPhone(t);
    await phone.tap(url, null);
    await inChat(stack.sim.url, phone, 'repeat');
    await inChat(stack.sim.url, phone, 'contact');
    await eventually(t, async () => (await phone.code()) || undefined);
    await settled(t, stack, queues);
    t.is((await phone.messages()).length, 1);
  },
);

test.serial('small talk is answered, and is no start', async (t) => {
  const { phone, url } = await refusedPhone(t);
  const token = tokenOf(url);
  for (const text of [
    'hello',
    '/help',
    '/start',
    `start ${token}`,
    ` /start ${token}`,
    `/start ${token} x`,
  ]) {
    await inChat(stack.sim.url, phone, 'text', { text });
  }
  await settled(t, stack, queues);
  t.false(await isLinked(phone));
  t.deepEqual(await phone.messages(), []);
});

test.serial(
  'blocking the bot unlinks every recipient of the chat; unblocking does not link again',
  async (t) => {
    const phone = stack.phone();
    const other = await stack.customer();
    await linkTelegram(customer, phone);
    await linkTelegram(other, phone);
    t.true(await isLinked(phone));
    await inChat(stack.sim.url, phone, 'block');
    await eventually(t, async () => ((await isLinked(phone)) ? undefined : true));
    await inChat(stack.sim.url, phone, 'unblock');
    await settled(t, stack, queues);
    t.false(await isLinked(phone));
    await phone.behave({ whatsapp: 'unreachable_sync' });
    for (const each of [customer, other]) {
      t.is((await each.live.send(phone.number)).error.code, 'CHANNEL_NOT_LINKED');
    }
  },
);

test.serial(
  'a phone proven once is linked for another account by a tap alone, for 30 days',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    const other = await stack.customer();
    const issued = await other.live.post('/v1/otp/telegram-link', { phone: phone.number });
    await phone.tap(issued.data.telegram_bot_url, null);
    await phone.behave({ whatsapp: 'unreachable_sync' });
    const sent = await other.live.deliver(phone.number, '232323');
    t.is(sent.status, 200, sent.text);
    t.is(await phone.code(), '232323');
    // A tap is no new proof: the 30 days count from the contact.
    clock.forward(31 * day);
    const third = await stack.customer();
    const late = await third.live.post('/v1/otp/telegram-link', { phone: phone.number });
    await phone.tap(late.data.telegram_bot_url, null);
    t.is((await third.live.deliver(phone.number, '242424')).error.code, 'CHANNEL_NOT_LINKED');
    await phone.tap(late.data.telegram_bot_url);
    t.is((await third.live.deliver(phone.number, '242424')).status, 200);
  },
);
