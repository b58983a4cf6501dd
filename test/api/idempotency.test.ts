// Idempotency-Keys beyond the happy path: dead jobs, a Redis that forgot, and answers that had no effect (design section 4).
import test from 'ava';
import sinon from 'sinon';
import { idempotencyKeyHash } from '../../lib/idempotency/rules.ts';
import { idAt, newId } from '../../lib/kernel/ids.ts';
import { aNumber } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;
let redis: RedisKeys;

test.before(async () => {
  stack = await startStack('once', { settings: { SEND_DEADLINE_MS: '5500' } });
  customer = await stack.customer();
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const once = (key: string) => ({ 'Idempotency-Key': key });

/** What a Redis that lost its memory no longer knows of keys and windows. */
const forget = async (): Promise<void> => {
  await redis.remove(`${stack.config.keyPrefix}idem:`);
  await redis.remove(`${stack.config.keyPrefix}lim:`);
};

test.serial('a job that died frees its key: the same request is sent afresh', async (t) => {
  const phone = stack.phone();
  const broken = sinon.stub(stack.worker.live, 'claim').rejects(new TypeError('a mistake of ours'));
  const failed = await customer.live.send(phone.number, once('died'));
  broken.restore();
  t.is(failed.error.code, 'DELIVERY_FAILED', failed.text);
  const again = await customer.live.send(phone.number, once('died'));
  t.is(again.status, 200, again.text);
  t.is(again.headers.get('idempotent-replayed'), null);
  t.is((await phone.messages()).length, 1);
});

test.serial('an answer without effect is not kept: the key starts afresh', async (t) => {
  const phone = stack.phone();
  for (const whatsapp of ['error:131009', 'template_paused', 'unreachable_sync']) {
    await phone.behave({ whatsapp });
    t.true((await customer.live.send(phone.number, once('afresh'))).status >= 400);
  }
  await phone.behave({ whatsapp: 'ok' });
  const sent = await customer.live.send(phone.number, once('afresh'));
  t.is(sent.status, 200, sent.text);
  const other = await customer.live.send(aNumber(), once('afresh'));
  t.is(other.error.code, 'IDEMPOTENCY_KEY_REUSED');
});

test.serial('when Redis forgot, MySQL still knows: nothing is sent twice', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.deliver(phone.number, '707070', once('forgotten'));
  t.is(sent.status, 200);
  await forget();
  const again = await customer.live.deliver(phone.number, '707070', once('forgotten'));
  t.is(again.status, 200, again.text);
  t.is(again.data.message_id, sent.data.message_id);
  t.is((await phone.messages()).length, 1);
  // Nothing was sent, so the recipient's place among the account's sends is free.
  t.is((await customer.live.deliver(phone.number, '707071')).status, 200);
});

test.serial(
  'when Redis forgot, another recipient under the same key is 422, not a wrong 200',
  async (t) => {
    const [first, second] = [stack.phone(), stack.phone()];
    t.is((await customer.live.send(first.number, once('swapped'))).status, 200);
    await forget();
    const other = await customer.live.send(second.number, once('swapped'));
    t.is(other.error.code, 'IDEMPOTENCY_KEY_REUSED', other.text);
    t.deepEqual(await second.messages(), []);
    await forget();
    const kind = await customer.live.deliver(first.number, '123123', once('swapped'));
    t.is(kind.error.code, 'IDEMPOTENCY_KEY_REUSED', kind.text);
  },
);

test.serial('when Redis forgot, a key whose message came to nothing is free again', async (t) => {
  const phone = stack.phone();
  const { accountId } = customer;
  const idempotencyHash = idempotencyKeyHash({ accountId, mode: 'live', key: 'came-to-nothing' });
  // Its worker died for good after it took the key, an hour ago.
  const id = idAt(Date.now() - 3_600_000).slice(0, 13) + newId().slice(13);
  await stack.api.reservations.reserve({ id, accountId, mode: 'live', idempotencyHash });
  const first = await customer.live.send(phone.number, once('came-to-nothing'));
  t.is(first.error.code, 'IDEMPOTENCY_KEY_IN_PROGRESS', first.text);
  const next = await customer.live.send(phone.number, once('came-to-nothing'));
  t.is(next.status, 200, next.text);
  t.is((await phone.messages()).length, 1);
});

test.serial(
  'a replay is the first answer, also past the limits, and names the first request',
  async (t) => {
    const phone = stack.phone();
    const headers = { ...once('replayed'), 'X-Request-Id': 'first-request' };
    const sent = await customer.live.send(phone.number, headers);
    for (let again = 0; again < 5; again++) {
      const replay = await customer.live.send(phone.number, once('"replayed"'));
      t.deepEqual(replay.data, sent.data);
      t.is(replay.headers.get('idempotent-replayed'), 'true');
      t.is(replay.headers.get('original-request-id'), 'first-request');
    }
    t.is((await phone.messages()).length, 1);
  },
);

test.serial('the same key belongs to each account, mode and call by itself', async (t) => {
  const phone = stack.phone();
  const other = await stack.customer();
  t.is((await customer.live.send(phone.number, once('mine'))).status, 200);
  t.is((await other.live.send(phone.number, once('mine'))).status, 200);
  t.is((await customer.test.send(phone.number, once('mine'))).status, 200);
  const code = '123123';
  const deliver = await customer.live.deliver(phone.number, code, once('mine'));
  t.is(deliver.error.code, 'IDEMPOTENCY_KEY_REUSED');
});
