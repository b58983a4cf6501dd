// A key reads what is of its own mode, a session reads both: every route that reads is tried with phones and ids of both.
import test from 'ava';
import type { CsvRoute, JsonRoute } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { idBytes, newId, toMessageId } from '../../lib/kernel/ids.ts';
import type { Client } from '../support/client.ts';
import { countAgain } from '../support/rollups.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

const modes = ['live', 'test'] as const;
type Mode = (typeof modes)[number];

const phones: Record<Mode, string> = { live: '+14155550111', test: '+14155550122' };

type Made = { messageId: string; deliveryId: string; reference: string };

let stack: Stack;
let customer: Customer;
let made: Record<Mode, Made>;

const insertMessage = async (mode: Mode, id: string): Promise<void> => {
  const { db, clock } = stack.api;
  const now = clock.now();
  await db('messages').insert({
    id: idBytes(id),
    account_id: idBytes(customer.accountId),
    mode,
    origin: 'send',
    phone: phones[mode],
    country: mode === 'live' ? 'US' : 'CA',
    request_id: 'r',
    plan: 'pay_per_success',
    price_micros: 0,
    status: 'sent',
    channel: 'whatsapp',
    accepted_at: now,
  });
  await countAgain(stack, customer.accountId, [now]);
};

const insertDelivery = (mode: Mode, id: string, messageId: string) =>
  stack.api.webhooks.add(
    [
      {
        id,
        accountId: customer.accountId,
        eventId: newId().replaceAll('-', ''),
        type: 'otp.sent',
        mode,
        body: JSON.stringify({ mode, data: { message_id: messageId, phone: phones[mode] } }),
        place: { kind: 'waiting' },
      },
    ],
    stack.api.clock.now(),
  );

const make = async (mode: Mode): Promise<Made> => {
  const [id, deliveryId] = [newId(), newId()];
  const { db } = stack.api;
  await insertMessage(mode, id);
  await insertDelivery(mode, deliveryId, toMessageId(id));
  await db('totp_log').insert({
    id: idBytes(newId()),
    account_id: idBytes(customer.accountId),
    mode,
    phone: phones[mode],
    enrollment_id: Buffer.alloc(16, 1),
    step: null,
    status: 'verified',
    price_micros: 0,
    request_id: 'r',
  });
  const reference = `charge:${id}`;
  // The ledger is about live messages alone.
  if (mode === 'live') {
    await db('ledger').insert({
      account_id: idBytes(customer.accountId),
      seq: 1_000,
      id: idBytes(newId()),
      reference,
      kind: 'charge',
      counter: 'revenue',
      amount_micros: -50_000,
      balance_after: 0,
      message_id: idBytes(id),
    });
  }
  return { messageId: toMessageId(id), deliveryId, reference };
};

test.before(async () => {
  stack = await startStack('ownmode', { workers: [] });
  customer = await stack.customer({ money: 0 });
  made = { live: await make('live'), test: await make('test') };
});
test.after.always(() => stack?.close());

const reading = routes.filter(
  (route): route is JsonRoute | CsvRoute =>
    route.kind !== 'raw' &&
    route.method === 'GET' &&
    (route.auth === 'account' || route.auth === 'key'),
);

/** The ids with which each of these paths is asked for something of a mode. */
const idIn = (path: string, mode: Mode): string => {
  if (path.startsWith('/v1/clients/webhooks/deliveries/')) return made[mode].deliveryId;
  if (path.startsWith('/v1/clients/capacity-requests/')) return newId();
  return made[mode].messageId;
};

const pathOf = (path: string, mode: Mode): string => path.replace(/\{\w+\}/, idIn(path, mode));

const marks = (mode: Mode): string[] => [
  phones[mode],
  phones[mode].slice(1),
  made[mode].messageId,
  made[mode].messageId.slice('otp_'.length),
  made[mode].deliveryId,
];

const holds = (text: string, mode: Mode): boolean =>
  marks(mode).some((mark) => text.includes(mark));

/** Reads; what exports count is forgotten first, since this file is one account. */
const read = async (client: Client, path: string) => {
  if (path.includes('/export')) {
    await stack.api.redis.del(`${stack.config.keyPrefix}read:x:${customer.accountId}`);
  }
  return client.get(path);
};

const keyOf: Record<Mode, () => Client> = {
  live: () => customer.live,
  test: () => customer.test,
};
const other: Record<Mode, Mode> = { live: 'test', test: 'live' };

for (const route of reading) {
  for (const mode of modes) {
    test.serial(
      `GET ${route.path}: a ${mode} key is told no phone and no id of the other mode`,
      async (t) => {
        const key = keyOf[mode]();
        for (const wanted of modes) {
          const answer = await read(key, pathOf(route.path, wanted));
          t.false(holds(answer.text, other[mode]), answer.text);
          if (!route.path.includes('{') || wanted === mode) continue;
          t.is(answer.status, 404, 'what is of the other mode is not found');
        }
      },
    );
  }
}

const byMode = reading.filter(({ query }) => query?.describe().keys?.mode !== undefined);

for (const route of byMode) {
  test.serial(
    `GET ${route.path}?mode=: a key may name its own mode, a session either`,
    async (t) => {
      for (const mode of modes) {
        const own = await read(keyOf[mode](), `${route.path}?mode=${mode}`);
        t.is(own.status, 200);
        t.true(holds(own.text, mode));
        const refused = await read(keyOf[mode](), `${route.path}?mode=${other[mode]}`);
        t.is(refused.status, 400);
        t.is(refused.error.code, 'VALIDATION_ERROR');
        const [detail] = refused.error.details as { field: string; issue: string }[];
        t.is(detail?.field, 'mode');
        t.regex(String(detail?.issue), new RegExp(`must be ${mode}`));
        const asked = await read(customer.session, `${route.path}?mode=${mode}`);
        t.true(holds(asked.text, mode));
        t.false(holds(asked.text, other[mode]));
      }
    },
  );
}

test.serial('the lists that take a mode are those of messages and TOTP verifications', (t) => {
  t.deepEqual(byMode.map(({ path }) => path).toSorted(), [
    '/v1/clients/otps',
    '/v1/clients/otps/export',
    '/v1/clients/totp/log',
    '/v1/clients/webhooks/deliveries',
  ]);
});

const listsOfBoth = [
  '/v1/clients/otps',
  '/v1/clients/otps/recent',
  '/v1/clients/otps/export',
  '/v1/clients/totp/log',
  '/v1/clients/webhooks/deliveries',
  '/v1/clients/webhooks/deliveries?type=otp.sent',
  '/v1/clients/webhooks/deliveries?status=pending',
];

for (const path of listsOfBoth) {
  test.serial(`GET ${path}: a session reads both modes, a key all of its own`, async (t) => {
    const both = await read(customer.session, path);
    for (const mode of modes) {
      t.true(holds(both.text, mode), both.text);
      t.true(holds((await read(keyOf[mode](), path)).text, mode));
    }
  });
}

test.serial('a session finds messages and deliveries of both modes', async (t) => {
  for (const mode of modes) {
    const message = await customer.session.get(`/v1/clients/otps/${made[mode].messageId}/timeline`);
    t.true(holds(message.text, mode));
    const delivery = await customer.session.get(
      `/v1/clients/webhooks/deliveries/${made[mode].deliveryId}`,
    );
    t.true(holds(delivery.text, mode));
  }
});

test.serial('a live key delivers no webhook of the sandbox once more', async (t) => {
  const again = await customer.live.post(
    `/v1/clients/webhooks/deliveries/${made.test.deliveryId}/redeliver`,
    undefined,
  );
  t.is(again.status, 404);
});

test.serial(
  'transactions move live money: a live key and a session read them, a test key has none',
  async (t) => {
    const path = '/v1/clients/transactions';
    const { data } = await customer.test.get(path);
    t.deepEqual(data, { items: [], next_before: null });
    t.is((await read(customer.test, `${path}/export`)).text.trim().split('\n').length, 1);
    for (const client of [customer.live, customer.session]) {
      t.true((await client.get(path)).text.includes(made.live.reference));
      t.true((await read(client, `${path}/export`)).text.includes(made.live.reference));
    }
  },
);

test.serial(
  'analytics count what is of the key’s own mode; a session counts live and sees both beside each other',
  async (t) => {
    type Analytics = {
      totals: { requested: number };
      countries: { country: string }[];
      modes: { mode: Mode; requested: number }[];
    };
    const analytics = async (client: Client) =>
      (await client.get('/v1/clients/analytics?period=1')).data as Analytics;
    for (const mode of modes) {
      const { totals, countries, modes: shown } = await analytics(keyOf[mode]());
      t.is(totals.requested, 1);
      t.deepEqual(
        countries.map(({ country }) => country),
        [mode === 'live' ? 'US' : 'CA'],
      );
      t.deepEqual(
        shown.map((one) => [one.mode, one.requested]),
        [[mode, 1]],
      );
    }
    const both = await analytics(customer.session);
    t.deepEqual(
      both.countries.map(({ country }) => country),
      ['US'],
    );
    t.deepEqual(
      both.modes.map((one) => one.mode),
      ['live', 'test'],
    );
    for (const path of ['funnel', 'channels', 'timeseries']) {
      const { text } = await customer.test.get(`/v1/clients/analytics/${path}?period=1`);
      t.regex(text, /"(count|requested)":1\b/, path);
    }
  },
);
