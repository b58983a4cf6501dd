// With an engine gone the API says so within a second, promises nothing it cannot keep, and comes back by itself.
import test from 'ava';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('outages', { cuttable: true, settings: { SEND_DEADLINE_MS: '3000' } });
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

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
