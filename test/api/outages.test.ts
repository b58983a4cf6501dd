// With an engine gone the API says so within a second, promises nothing it cannot keep, and comes back by itself.
import test from 'ava';
import sinon from 'sinon';
import { minute } from '../../lib/kernel/clock.ts';
import { linkTelegram, report } from '../support/control.ts';
import { eventsOf } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { holdNext } from '../support/hold.ts';
import type { TestPhone } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;
let redis: RedisKeys;
const clock = createHandClock();

test.before(async () => {
  const calls = { WHATSAPP_TIMEOUT_MS: '1000', WHATSAPP_ECHO_WAIT_MS: '300' };
  const settings = { SEND_DEADLINE_MS: '3000', ...calls };
  stack = await startStack('outages', { cuttable: true, clock, settings });
  redis = openRedisKeys();
  customer = await stack.customer();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const cut = async (
  engine: 'mysql' | 'redis' | 'amqp',
  work: () => Promise<void>,
): Promise<void> => {
  const line = stack.lines?.[engine];
  line?.cut();
  try {
    await work();
  } finally {
    line?.mend();
  }
};

const sendAgain = async (t: Parameters<typeof eventually>[0], number: string) =>
  eventually(t, async () => {
    const answer = await customer.live.send(number);
    return answer.status === 200 ? answer : undefined;
  });

type Sent = Awaited<ReturnType<Customer['live']['send']>>;

/** Four sends in a row, and the time of the quickest: a busy machine may delay one of them, but not all. */
const sendFour = async (number: string): Promise<{ answers: Sent[]; quickestMs: number }> => {
  const answers: Sent[] = [];
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 4; tries++) {
    const startedAt = performance.now();
    answers.push(await customer.live.send(number));
    quickestMs = Math.min(quickestMs, performance.now() - startedAt);
  }
  return { answers, quickestMs };
};

test.serial(
  'without the broker: 503 within a second, no limit touched, and back by itself',
  async (t) => {
    const phone = stack.phone();
    const other = stack.phone();
    await customer.live.deliver(other.number, '101010');
    await cut('amqp', async () => {
      await eventually(t, () => (stack.api.broker.ready() ? undefined : true));
      const { answers, quickestMs } = await sendFour(phone.number);
      for (const { error, headers } of answers) {
        t.is(error.code, 'SERVICE_UNAVAILABLE');
        t.truthy(headers.get('retry-after'));
      }
      t.true(quickestMs < 1_000);
      t.is((await customer.live.verify(other.number, '101010')).error.code, 'SERVICE_UNAVAILABLE');
      t.is((await stack.anybody.get('/health')).status, 503);
    });
    // Four refusals took nothing: the fifth is the first that counts.
    await sendAgain(t, phone.number);
    t.is((await phone.messages()).length, 1);
    t.is((await customer.live.verify(other.number, '101010')).status, 200);
  },
);

test.serial(
  'without Redis: sends and verifies are 503 within a second, and back by themselves',
  async (t) => {
    const phone = stack.phone();
    await cut('redis', async () => {
      const { answers, quickestMs } = await sendFour(phone.number);
      for (const { error } of answers) t.is(error.code, 'SERVICE_UNAVAILABLE');
      t.true(quickestMs < 1_000);
      t.is((await customer.live.verify(phone.number, '123456')).status, 503);
      t.is((await stack.anybody.get('/health')).status, 503);
    });
    await sendAgain(t, phone.number);
    t.is((await phone.messages()).length, 1);
  },
);

test.serial('without MySQL: a send is still answered, and its row follows', async (t) => {
  const phone = stack.phone();
  await customer.live.send(stack.phone().number);
  const { messageId } = await new Promise<{ messageId: unknown }>((resolve, reject) => {
    cut('mysql', async () => {
      const sent = await customer.live.send(phone.number);
      t.is(sent.status, 200);
      await eventually(t, async () => {
        const { data } = await stack.anybody.get('/health');
        return data.status === 'degraded' ? true : undefined;
      });
      resolve({ messageId: sent.data.message_id });
    }).catch(reject);
  });
  t.is((await phone.messages()).length, 1);
  const status = await eventually(
    t,
    async () => {
      const answer = await customer.live.get(`/v1/otp/status/${messageId}`);
      return answer.status === 200 ? answer : undefined;
    },
    20_000,
  );
  t.is(status.data.status, 'sent');
  t.is((await customer.live.verify(phone.number, await phone.code())).status, 200);
});

test.serial(
  'without a worker: DELIVERY_FAILED, and nothing is sent when the worker comes',
  async (t) => {
    const phone = stack.phone();
    await stack.stopWorkers('whatsapp');
    const refused = await customer.live.send(phone.number);
    t.is(refused.error.code, 'DELIVERY_FAILED');
    await stack.startWorkers('whatsapp');
    await eventually(t, async () => {
      const { ready } = await stack.api.broker.depth('whatsapp.send');
      return ready === 0 ? true : undefined;
    });
    const next = await customer.live.send(phone.number);
    t.is(next.status, 200);
    t.is((await phone.messages()).length, 1);
    const rows = await stack.api.db('messages').where({ phone: phone.number }).orderBy('id');
    t.deepEqual(
      rows.map((row) => [row.status, row.failure_reason]),
      [
        ['failed', 'deadline'],
        ['sent', null],
      ],
    );
  },
);

const linked = async (behaviour: Parameters<TestPhone['behave']>[0]): Promise<TestPhone> => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave(behaviour);
  return phone;
};

const rowOf = (phone: TestPhone) => stack.api.db('messages').where({ phone: phone.number }).first();

test.serial(
  'MySQL away when nobody knows whether Telegram has it: that stays so, and the key with it',
  async (t) => {
    const phone = await linked({ whatsapp: 'unreachable_sync', telegram: 'http_500' });
    const once = { 'Idempotency-Key': 'unsure' };
    const answer = holdNext(stack.worker.telegram, 'sendCode');
    const sending = customer.live.send(phone.number, once);
    await answer.reached;
    await cut('mysql', async () => {
      answer.release();
      t.is((await sending).error.code, 'TELEGRAM_UNAVAILABLE');
      await eventually(t, () =>
        (stack.worker.broker.handled()['telegram.send'] ?? 0) > 0 ? true : undefined,
      );
    });
    const row = await eventually(t, () => rowOf(phone));
    t.is(row.failure_reason, 'telegram_outcome_unknown');
    const again = await eventually(t, async () => {
      const { error } = await customer.live.send(phone.number, once);
      return error.code === 'SERVICE_UNAVAILABLE' ? undefined : error;
    });
    t.is(again.code, 'IDEMPOTENCY_KEY_IN_PROGRESS');
  },
);

for (const [without, telegram, code] of [
  ['a telegram worker', 'ok', 'DELIVERY_FAILED'],
  ['Telegram', 'rate_limited', 'TELEGRAM_UNAVAILABLE'],
] as const) {
  test.serial(
    `without ${without}, after a call of WhatsApp that had no answer: ${code}, and the key stays`,
    async (t) => {
      const phone = await linked({ whatsapp: 'timeout', telegram });
      const once = { 'Idempotency-Key': `silent ${telegram}`.replace(' ', '-') };
      if (telegram === 'ok') await stack.stopWorkers('telegram');
      t.is((await customer.live.send(phone.number, once)).error.code, code);
      const again = async () => (await customer.live.send(phone.number, once)).error.code;
      t.is(await again(), 'IDEMPOTENCY_KEY_IN_PROGRESS');
      if (telegram === 'ok') await stack.startWorkers('telegram');
      const row = await eventually(t, () => rowOf(phone));
      t.is(await again(), 'IDEMPOTENCY_KEY_IN_PROGRESS', row.failure_reason);
      t.deepEqual(await phone.messages(), []);
    },
  );
}

// Last of them: it puts the clock forward.
test.serial(
  'MySQL away for longer than Redis keeps a message: what Telegram took is delivered all the same',
  async (t) => {
    const phone = await linked({ whatsapp: 'stays_sent' });
    const sent = await customer.live.deliver(phone.number, '656565');
    const yes = holdNext(stack.worker.telegram, 'sendCode');
    await report(stack.sim.url, phone, 'failed', 131026);
    await yes.reached;
    const gone = sinon.stub(stack.worker.links, 'chatOf');
    await cut('mysql', async () => {
      // What is asked of MySQL once the chat is not in the cache any more.
      gone.callsFake(() => stack.worker.links.recipientsOf(1) as never);
      yes.release();
      const hash = `${stack.config.keyPrefix}m:`;
      await redis.leave(hash, 4_000);
      await eventually(t, async () => {
        const left = [...(await redis.snapshot(hash)).values()].map(({ leftMs }) => leftMs);
        return left.some((ms) => ms > minute) ? true : undefined;
      });
    });
    // The owner has left the chat since: that is no reason to forget that it got the code.
    gone.resolves(undefined);
    clock.forward(6 * minute);
    await eventually(t, async () =>
      (await eventsOf(stack, sent.data.message_id)).includes('otp.delivered') ? true : undefined,
    );
    gone.restore();
    t.like(await rowOf(phone), { channel: 'telegram', failed_at: null });
    t.false((await eventsOf(stack, sent.data.message_id)).includes('otp.failed'));
  },
);

test.serial('no job is lost or dead after all that', async (t) => {
  for (const name of ['whatsapp.send', 'whatsapp.status', 'billing.charge', 'analytics.rollup']) {
    for (const queue of [name, `${name}.again`, `${name}.dead`]) {
      await eventually(t, async () => {
        const { ready } = await stack.api.broker.depth(queue);
        return ready === 0 ? true : undefined;
      });
    }
  }
  t.pass();
});
