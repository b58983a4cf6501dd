// The simulated Bot API: methods, errors, and updates that are secret, sequential and repeated.
import test from 'ava';
import { bot, call, startPair, telegram, updatesOf } from './harness.ts';
import { telegramPlans } from './plans.ts';
import { chatIdOf, phoneOfChat } from './telegram-chats.ts';

const phone = '+14155550123';
const chatId = chatIdOf(phone);
const message = (text: string, more = {}) => ({
  chat_id: chatId,
  text,
  parse_mode: 'HTML',
  ...more,
});

test('a chat id is no phone number, needs more than 32 bits, and leads back to its phone', (t) => {
  for (const one of [phone, '+4915112345678', '+999999999999999', '+1234567']) {
    t.is(phoneOfChat(chatIdOf(one)), one);
    t.true(chatIdOf(one) > 2 ** 32 && chatIdOf(one) < 2 ** 52);
    t.false(String(chatIdOf(one)).includes(one.slice(1)));
  }
  t.is(phoneOfChat(12345), undefined);
});

test('a wrong token is 401, an unknown method 404', async (t) => {
  const { sim } = await startPair(t);
  const wrong = await call(`${sim.url}/telegram/bot1:x/getMe`);
  t.is(wrong.status, 401);
  t.deepEqual(wrong.body, { ok: false, error_code: 401, description: 'Unauthorized' });
  t.is((await bot(sim, 'sendPhoto')).status, 404);
  t.is((await bot(sim, 'getMe')).body.result.username, telegram.botUsername);
});

test('a code arrives as people see it, and leaves the phone when it is deleted', async (t) => {
  const { sim } = await startPair(t);
  const markup = { inline_keyboard: [[{ text: 'Copy', copy_text: { text: '493027' } }]] };
  const sent = await bot(
    sim,
    'sendMessage',
    message('Code <code>493027</code> &amp; bye', { reply_markup: markup }),
  );
  t.like(sent.body, {
    ok: true,
    result: { text: 'Code 493027 & bye', chat: { id: chatId, type: 'private' } },
  });
  t.like(sim.phones.messages(phone)[0], {
    channel: 'telegram',
    code: '493027',
    text: 'Code 493027 & bye',
  });
  const stats = await call(`${sim.url}/stats/messages`);
  t.deepEqual(stats.body.telegram, { [`${phone}:493027`]: [1, 1] });
  const gone = { chat_id: chatId, message_id: sent.body.result.message_id };
  t.is((await bot(sim, 'deleteMessage', gone)).body.result, true);
  t.is((await bot(sim, 'deleteMessage', gone)).status, 400);
  t.deepEqual(sim.phones.messages(phone), []);
});

const refused: [string, Record<string, unknown>, RegExp][] = [
  ['unknown chat', { chat_id: 5, text: 'x' }, /chat not found/],
  ['no chat', { text: 'x' }, /chat_id is empty/],
  ['empty text', message(''), /text is empty/],
  ['long text', message('x'.repeat(4097)), /too long/],
  ['unclosed tag', message('<b>x'), /can't parse entities/],
  ['unknown tag', message('<h1>x</h1>'), /can't parse entities/],
  ['keyboard of no rows', message('x', { reply_markup: { keyboard: 3 } }), /keyboard/],
  [
    'inline button without action',
    message('x', { reply_markup: { inline_keyboard: [[{ text: 'a' }]] } }),
    /inline keyboard/,
  ],
  [
    'empty copy text',
    message('x', { reply_markup: { inline_keyboard: [[{ text: 'a', copy_text: { text: '' } }]] } }),
    /COPY_TEXT/,
  ],
  ['markup that is no JSON', message('x', { reply_markup: '{' }), /parse/],
];

for (const [title, body, description] of refused) {
  test(`sendMessage refused: ${title}`, async (t) => {
    const { sim } = await startPair(t);
    const answer = await bot(sim, 'sendMessage', body);
    t.is(answer.status, 400);
    t.is(answer.body.error_code, 400);
    t.regex(answer.body.description, description);
  });
}

for (const [name, plan] of Object.entries(telegramPlans)) {
  test(`behaviour ${name}: ${plan.about}`, async (t) => {
    const { sim } = await startPair(t);
    sim.phones.behave(phone, { telegram: name, delay_ms: 40 });
    const answer = await bot(sim, 'sendMessage', message('Code 493027')).catch(() => undefined);
    if (plan.error) {
      t.is(answer?.status, plan.error.code);
      t.is(answer?.body.description, plan.error.description);
      t.is(answer?.body.parameters?.retry_after, plan.error.retryAfterSeconds);
    } else if (plan.answer === 'html_502') t.is(answer?.status, 502);
    else if (plan.answer === 'ok') t.true(answer?.body.ok);
    else t.is(answer, undefined);
    t.is(sim.phones.messages(phone).length, plan.arrives ? 1 : 0);
  });
}

test('retry_after:<seconds> answers 429 with that wait and its header', async (t) => {
  const { sim } = await startPair(t);
  sim.phones.behave(phone, { telegram: 'retry_after:3' });
  const { status, body, headers } = await bot(sim, 'sendMessage', message('x'));
  t.is(status, 429);
  t.deepEqual(body.parameters, { retry_after: 3 });
  t.is(headers.get('retry-after'), '3');
});

test('updates carry the secret, stay in order per chat and are repeated until taken', async (t) => {
  const { sim, receiver } = await startPair(t);
  let refusals = 2;
  receiver.answer = ({ raw }) => {
    if (!raw.includes('alpha') || refusals === 0) return 200;
    refusals -= 1;
    return 500;
  };
  const say = (of: string, text: string) =>
    call(`${sim.url}/phones/${of}/telegram/text`, 'POST', { text });
  await Promise.all([say(phone, 'alpha'), say(phone, 'second'), say('+14155550124', 'other')]);
  const updates = updatesOf(receiver.received);
  const ofPhone = updates.filter((one) => one.message.chat.id === chatId);
  t.deepEqual(
    ofPhone.map((one) => one.message.text),
    ['alpha', 'second'],
  );
  t.true(ofPhone[1].update_id > ofPhone[0].update_id);
  t.is(updates[0].message.text, 'other');
  for (const { headers } of receiver.received) {
    t.is(headers['x-telegram-bot-api-secret-token'], telegram.webhookSecret);
  }
  await call(`${sim.url}/phones/${phone}/telegram/repeat`, 'POST');
  t.deepEqual(updatesOf(receiver.received).at(-1), ofPhone[1]);
});

test('webhook and getUpdates exclude each other', async (t) => {
  const { sim, receiver } = await startPair(t);
  t.is((await bot(sim, 'getUpdates')).status, 409);
  t.is((await bot(sim, 'getWebhookInfo')).body.result.url, `${receiver.url}/v1/inbound/telegram`);
  await bot(sim, 'deleteWebhook');
  await call(`${sim.url}/phones/${phone}/telegram/text`, 'POST', { text: 'kept' });
  const [update] = (await bot(sim, 'getUpdates')).body.result;
  t.is(update.message.text, 'kept');
  t.deepEqual((await bot(sim, 'getUpdates', { offset: update.update_id + 1 })).body.result, []);
  const hook = {
    url: `${receiver.url}/elsewhere`,
    secret_token: 'new',
    allowed_updates: ['message'],
  };
  t.is((await bot(sim, 'setWebhook', hook)).body.result, true);
  await call(`${sim.url}/phones/${phone}/telegram/text`, 'POST', { text: 'moved' });
  t.like(receiver.received[0], {
    path: '/elsewhere',
    headers: { 'x-telegram-bot-api-secret-token': 'new' },
  });
  t.is((await bot(sim, 'setWebhook', { url: 'x', secret_token: 'a b' })).status, 400);
});

test('a user who blocks the bot is told of, gets nothing, and can come back', async (t) => {
  const { sim, receiver } = await startPair(t);
  await sim.phones.block(phone);
  const [update] = updatesOf(receiver.received);
  t.is(update.my_chat_member.new_chat_member.status, 'kicked');
  t.is((await bot(sim, 'sendMessage', message('Code 493027'))).status, 403);
  await sim.phones.unblock(phone);
  t.is(updatesOf(receiver.received)[1].my_chat_member.new_chat_member.status, 'member');
  t.is((await bot(sim, 'sendMessage', message('Code 493027'))).status, 200);
});
