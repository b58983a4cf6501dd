// Live messages in Redis: one winner of every claim, one success of every code, and truth about what was given up.
import test from 'ava';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../../lib/infra/redis.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import type { Message } from '../../lib/messages/rules.ts';
import type { LiveRef } from '../../lib/otp/live-message.ts';
import { createLiveStore, type LiveStore } from '../../lib/otp/store.ts';
import { testUrl, uniqueName } from '../support/names.ts';

let redis: RedisClient;
let live: LiveStore;

test.before(async () => {
  redis = createRedis({ url: testUrl('TESSERA_TEST_REDIS_URL').href, log: silentLog });
  await redisReady(redis, 5_000);
  live = createLiveStore(redis, `${uniqueName('live')}:`);
});

test.after.always(() => closeRedis(redis));

const mac = (code: string) => ({ id: 'k1', mac: `mac-${code}` });

const aRecipient = (): string => newId().replaceAll('-', '');

const aMessage = (id = newId()): Message => ({
  id,
  accountId: newId(),
  mode: 'live',
  origin: 'send',
  phone: '+14155550123',
  country: 'US',
  requestId: 'req-1',
  plan: 'trial',
  priceMicros: 0,
  idempotencyHash: null,
});

const claim = (ref: LiveRef, code = '111111', leg: 'whatsapp' | 'telegram' = 'whatsapp') =>
  live.claim(leg, ref, Date.now(), {
    message: aMessage(ref.id),
    sealedCode: 'sealed',
    mac: mac(code),
    waiter: { replyTo: 'q', correlationId: ref.id },
    reachable: false,
  });

const send = async (recipient: string, code: string): Promise<LiveRef> => {
  const ref = { recipient, id: newId() };
  await claim(ref, code);
  await live.accept('whatsapp', ref, Date.now(), false);
  return ref;
};

const verify = (recipient: string, code: string, now = Date.now()) =>
  live.verify(recipient, [mac(code)], now, newId());

test('of fifty claims one wins', async (t) => {
  const ref = { recipient: aRecipient(), id: newId() };
  const claims = await Promise.all(Array.from({ length: 50 }, () => claim(ref)));
  t.is(claims.filter((state) => state === 'won').length, 1);
  t.is(claims.filter((state) => state === 'sending').length, 49);
});

test('a message that was given up is never claimed, and one that was claimed is not given up', async (t) => {
  const early = { recipient: aRecipient(), id: newId() };
  t.is(await live.abandon(early, Date.now()), 'abandoned');
  t.is(await claim(early), 'abandoned');
  const late = { recipient: aRecipient(), id: newId() };
  await claim(late);
  t.is(await live.abandon(late, Date.now()), 'sending');
  await live.accept('whatsapp', late, Date.now(), false);
  t.is(await live.abandon(late, Date.now()), 'accepted');
});

test('a leg that sent nothing can be claimed again, or the message given up', async (t) => {
  const ref = { recipient: aRecipient(), id: newId() };
  await claim(ref);
  t.true(await live.settleLeg('whatsapp', ref, 'queued'));
  t.is(await claim(ref), 'won');
  await live.settleLeg('whatsapp', ref, 'queued');
  t.is(await live.abandon(ref, Date.now()), 'abandoned');
});

test('a code is valid once a channel took it, and of fifty right verifies one succeeds', async (t) => {
  const recipient = aRecipient();
  const ref = { recipient, id: newId() };
  await claim(ref, '222222');
  t.is((await verify(recipient, '222222')).kind, 'none');
  await live.accept('whatsapp', ref, Date.now(), false);
  const verdicts = await Promise.all(Array.from({ length: 50 }, () => verify(recipient, '222222')));
  t.is(verdicts.filter(({ kind }) => kind === 'verified').length, 1);
  t.is(verdicts.filter(({ kind }) => kind === 'none').length, 49);
});

test('a newer code voids the older one; an older one accepted late does not come back', async (t) => {
  const recipient = aRecipient();
  const first = { recipient, id: newId() };
  await claim(first, '111111');
  await send(recipient, '222222');
  await live.accept('whatsapp', first, Date.now(), false);
  t.is((await verify(recipient, '111111')).kind, 'wrong');
  t.is((await verify(recipient, '222222')).kind, 'verified');
});

test('a code ends after five minutes', async (t) => {
  const recipient = aRecipient();
  await send(recipient, '333333');
  t.is((await verify(recipient, '333333', Date.now() + 300_001)).kind, 'none');
});

test('five failures count down to a block of fifteen minutes, for the right code too', async (t) => {
  const recipient = aRecipient();
  const now = Date.now();
  await send(recipient, '444444');
  for (const remaining of [4, 3, 2, 1, 0]) {
    t.deepEqual(await verify(recipient, '000000', now), { kind: 'wrong', remaining });
  }
  t.deepEqual(await verify(recipient, '444444', now + 1_000), { kind: 'blocked', waitMs: 899_000 });
  await send(recipient, '555555');
  t.is((await verify(recipient, '555555', now + 2_000)).kind, 'blocked');
});

test('failures older than fifteen minutes do not count', async (t) => {
  const recipient = aRecipient();
  const now = Date.now();
  await send(recipient, '444444');
  for (let failure = 0; failure < 4; failure++) await verify(recipient, '000000', now);
  const later = now + 900_001;
  const ref = { recipient, id: newId() };
  await claim(ref, '666666');
  await live.accept('whatsapp', ref, later, false);
  t.deepEqual(await verify(recipient, '000000', later), { kind: 'wrong', remaining: 4 });
});

test('success clears the failures', async (t) => {
  const recipient = aRecipient();
  await send(recipient, '777777');
  await verify(recipient, '000000');
  t.is((await verify(recipient, '777777')).kind, 'verified');
  await send(recipient, '888888');
  t.deepEqual(await verify(recipient, '000000'), { kind: 'wrong', remaining: 4 });
});

test('giving up after a call without an answer says so, until a receipt has settled it', async (t) => {
  const ref = { recipient: aRecipient(), id: newId() };
  await claim(ref);
  await live.settleLeg('whatsapp', ref, 'failed', 'outcome_unknown');
  t.is(await live.abandon(ref, Date.now()), 'outcome_unknown');
  t.is(await claim(ref, '111111', 'telegram'), 'abandoned');
  await live.receipt(ref, 'failed', 1, Date.now());
  t.is(await live.abandon(ref, Date.now()), 'abandoned');
});

test('an echo settles a call whose answer was lost, and its code is valid', async (t) => {
  const recipient = aRecipient();
  const ref = { recipient, id: newId() };
  await claim(ref, '123123');
  const effect = await live.receipt(ref, 'sent', Date.now(), Date.now());
  t.is(effect?.before, 'sending');
  t.is(await claim(ref), 'accepted');
  t.is((await verify(recipient, '123123')).kind, 'verified');
});

test('a failure that overtakes the answer of its call is not undone by it', async (t) => {
  const ref = { recipient: aRecipient(), id: newId() };
  await claim(ref);
  await live.receipt(ref, 'failed', Date.now(), Date.now());
  t.is(await live.accept('whatsapp', ref, Date.now(), true), undefined);
});

test('delivered beats failed, whatever came first', async (t) => {
  const recipient = aRecipient();
  const ref = await send(recipient, '321321');
  await live.receipt(ref, 'failed', 1, Date.now());
  t.deepEqual(await live.fail(ref, Date.now(), 'not_on_channel', 'void'), { taken: true });
  t.is((await verify(recipient, '321321')).kind, 'none');
  await live.receipt(ref, 'delivered', 2, Date.now());
  t.is((await live.find(ref))?.facts.failedAt, null);
  t.is((await verify(recipient, '321321')).kind, 'verified');
  const other = await send(aRecipient(), '321321');
  await live.receipt(other, 'delivered', 1, Date.now());
  t.is(await live.receipt(other, 'failed', 2, Date.now()), undefined);
  t.is(await live.fail(other, Date.now(), 'not_on_channel', 'void'), undefined);
});

test('a used code does not become valid again when the other channel’s yes comes later', async (t) => {
  const recipient = aRecipient();
  const ref = { recipient, id: newId() };
  const now = Date.now();
  // WhatsApp never answered, Telegram took it, and the code is used: then WhatsApp says that it was delivered.
  await claim(ref, '135135');
  await live.settleLeg('whatsapp', ref, 'failed');
  await claim(ref, '135135', 'telegram');
  await live.accept('telegram', ref, now, false);
  t.is((await verify(recipient, '135135')).kind, 'verified');
  await live.receipt(ref, 'delivered', now, now);
  t.is((await verify(recipient, '135135')).kind, 'none');
  // Used while the call of the late fallback is under way.
  const late = await send(recipient, '246246');
  await claim(late, '246246', 'telegram');
  t.is((await verify(recipient, '246246')).kind, 'verified');
  await live.accept('telegram', late, now, false);
  t.is((await verify(recipient, '246246')).kind, 'none');
});

test('an older code does not come back after the newer one was used', async (t) => {
  const recipient = aRecipient();
  const older = { recipient, id: newId() };
  await claim(older, '111111');
  await live.settleLeg('whatsapp', older, 'failed');
  await live.fail(older, Date.now(), 'outcome_unknown', 'void');
  await send(recipient, '222222');
  t.is((await verify(recipient, '222222')).kind, 'verified');
  t.is(await live.originOfLiveCode(recipient), undefined);
  await live.receipt(older, 'delivered', Date.now(), Date.now());
  t.is((await verify(recipient, '111111')).kind, 'none');
});

test('a caller who waits is told by the first receipt alone', async (t) => {
  const ref = { recipient: aRecipient(), id: newId() };
  await claim(ref);
  t.like(await live.accept('whatsapp', ref, Date.now(), true), { hold: true });
  t.true((await live.receipt(ref, 'sent', 1, Date.now()))?.held);
  t.false((await live.receipt(ref, 'delivered', 2, Date.now()))?.held);
});

test('a phone is reachable, not, or unknown', async (t) => {
  const phone = aRecipient();
  t.is(await live.reachable(phone), undefined);
  await live.learnReachable(phone, false);
  t.is(await live.reachable(phone), false);
  await live.learnReachable(phone, true);
  t.is(await live.reachable(phone), true);
});
