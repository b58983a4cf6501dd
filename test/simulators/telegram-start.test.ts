// Taps on Telegram links: the conversation with a stand-in bot, with the own contact, a foreign one, or none.
import test from 'ava';
import { bot, call, type Receiver, startPair, updatesOf } from './harness.ts';
import type { Simulators } from './server.ts';
import { chatIdOf } from './telegram-chats.ts';

const phone = '+14155550123';
const url = 'https://t.me/tessera_test_bot?start=kZ0p_abc-1';
const keyboard = {
  keyboard: [[{ text: 'Share my phone number', request_contact: true }]],
  one_time_keyboard: true,
};

/** A bot that asks for the contact and sends a code to its rightful owner. */
const startBot = (sim: Simulators, receiver: Receiver) => {
  receiver.answer = ({ raw }) => {
    const { message } = JSON.parse(raw.toString());
    const say = (text: string, markup?: unknown) =>
      bot(sim, 'sendMessage', { chat_id: message.chat.id, text, reply_markup: markup });
    const own = message.contact?.user_id === message.from.id && !message.forward_origin;
    if (message.text) void say('Please share your phone number.', keyboard);
    else if (own)
      void say('Thank you.', { remove_keyboard: true }).then(() => say('Your code is 604117'));
    else void say('This is not your number.', { remove_keyboard: true });
    return 200;
  };
};

const startConversation = async (t: Parameters<typeof startPair>[0]) => {
  const pair = await startPair(t);
  startBot(pair.sim, pair.receiver);
  const tap = async (body: Record<string, unknown>, of = phone) =>
    (await call(`${pair.sim.url}/phones/${of}/telegram/start`, 'POST', { quiet_ms: 150, ...body }))
      .body;
  return { ...pair, tap };
};

test('the own contact: start, question, contact, code', async (t) => {
  const { sim, receiver, tap } = await startConversation(t);
  t.deepEqual(await tap({ url }), {
    messages: ['Please share your phone number.', 'Thank you.', 'Your code is 604117'],
    code: '604117',
    contact_asked: true,
    contact_shared: true,
    linked: true,
  });
  const [start, contact] = updatesOf(receiver.received).map(({ message }) => message);
  t.like(start, { text: '/start kZ0p_abc-1', from: { id: chatIdOf(phone), is_bot: false } });
  t.like(start, { chat: { id: chatIdOf(phone), type: 'private' }, entities: [{ length: 6 }] });
  t.like(contact.contact, { phone_number: '14155550123', user_id: chatIdOf(phone) });
  t.is(sim.phones.messages(phone).length, 1);
  t.is(sim.phones.messages(phone, true).length, 3);
});

test('a foreign contact carries another user id, and nothing is linked', async (t) => {
  const { receiver, tap } = await startConversation(t);
  const answer = await tap({ url, contact: '+4915112345678' });
  t.deepEqual(answer.messages.at(-1), 'This is not your number.');
  t.is(answer.linked, undefined);
  const { contact } = updatesOf(receiver.received)[1].message;
  t.like(contact, { phone_number: '4915112345678', user_id: chatIdOf('+4915112345678') });
});

test('a card can have no user id, or be forwarded', async (t) => {
  const { receiver, tap } = await startConversation(t);
  await tap({ url, contact: { phone_number: phone } });
  t.false('user_id' in updatesOf(receiver.received)[1].message.contact);
  await tap({ url, contact: { phone_number: phone, user_id: 'own', forwarded: true } });
  t.truthy(updatesOf(receiver.received)[3].message.forward_origin);
});

test('contact null shares none', async (t) => {
  const { receiver, tap } = await startConversation(t);
  t.like(await tap({ url, contact: null }), {
    contact_asked: true,
    contact_shared: false,
    code: null,
  });
  t.is(updatesOf(receiver.received).length, 1);
});

test('a silent bot: the tap ends when its time is up', async (t) => {
  const { receiver, tap } = await startConversation(t);
  receiver.answer = () => 200;
  t.deepEqual((await tap({ url, wait_ms: 100 })).messages, []);
});

test('a link to another bot, a bad payload and a bad contact are refused', async (t) => {
  const { sim } = await startConversation(t);
  const start = `${sim.url}/phones/${phone}/telegram/start`;
  const bodies = [
    {},
    { url: 'https://t.me/other_bot?start=a' },
    { url: 'https://example.com/' },
    { url: `${url}!` },
    { url, contact: 'nobody' },
    { url, contact: 5 },
    { url, wait_ms: -1 },
  ];
  for (const body of bodies) t.is((await call(start, 'POST', body)).status, 400);
});

test('tapping a link again after blocking the bot unblocks it', async (t) => {
  const { sim, receiver, tap } = await startConversation(t);
  const answer = receiver.answer;
  receiver.answer = (received) =>
    received.raw.includes('my_chat_member') ? 200 : answer(received);
  await sim.phones.block(phone);
  t.is((await tap({ url })).code, '604117');
});
