// What becomes of events around an endpoint that changes: set, given up, set again, busy, replayed, and sent once more.

import test from 'ava';
import fc from 'fast-check';
import sinon from 'sinon';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { day, hour, minute, second } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { endpointView, listDeliveries } from '../../lib/webhooks/manage.ts';
import { purgeOld } from '../../lib/webhooks/purge.ts';
import { signedHeaders, signingKey } from '../../lib/webhooks/sign.ts';
import { ownerChange } from '../support/acts.ts';
import { createHandClock } from '../support/hand-clock.ts';
import {
  idOf,
  listenAt,
  type Receiver,
  receive,
  sendTest,
  typeOf,
  verifyDelivery,
} from '../support/receivers.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*' };
  stack = await startStack('webhook_endpoint', { clock, settings });
});
test.after.always(() => stack?.close());

/** How the endpoint fares; from the product itself, whose limits on reading are no matter here. */
const webhookOf = async ({ accountId }: Customer) => {
  const account = await stack.api.accounts.find(accountId);
  const view = account && (await endpointView(stack.api, account));
  if (!view) throw new Error('no address is set');
  return view;
};

const deliveriesOf = async ({ accountId }: Customer) =>
  (await listDeliveries(stack.api, accountId, { limit: 100 })).items;

const answering = (status: number, headers: Record<string, string> = {}) =>
  receive((response) => response.writeHead(status, headers).end());

/** Adds deliveries as if events had happened. */
const add = async ({ accountId }: Customer, count: number, status: 'waiting' | 'held') => {
  const rows = Array.from({ length: count }, () => {
    const id = newId();
    const eventId = id.replaceAll('-', '');
    const data = { message: 'This is a test.', sequence: 1 };
    const timestamp = new Date(clock.now()).toISOString();
    const event = { id: `evt_${eventId}`, type: 'webhook.test', timestamp, mode: 'live', data };
    return {
      ...{ id, accountId, eventId, type: 'webhook.test', body: JSON.stringify(event) },
      mode: 'live' as const,
      place: { kind: 'waiting' as const },
    };
  });
  await stack.api.webhooks.add(rows, clock.now());
  if (status === 'held') {
    await stack.api
      .db('webhook_deliveries')
      .where({ account_id: idBytes(accountId) })
      .update({ status: 'held', next_attempt_at: null });
  }
  return rows;
};

/** How many jobs of events the worker has taken and done. */
const dispatched = (): number => stack.worker.broker.stats()['webhook.dispatch.done'] ?? 0;

test.serial('an event right behind a new address arrives, whatever was known before', async (t) => {
  const receiver = await receive();
  for (let round = 0; round < 3; round++) {
    const customer = await stack.customer();
    // The worker learns that there is no address.
    const before = dispatched();
    await customer.test.send('+14155550100');
    await eventually(t, () => dispatched() > before || undefined);
    await listenAt(stack, customer, receiver.url);
    const id = await sendTest(customer.live);
    await eventually(t, () => receiver.calls.some((call) => idOf(call) === id) || undefined);
  }
  t.pass();
  receiver.close();
});

test.serial(
  'a test right behind a new address goes there at once, and nothing more to the one before',
  async (t) => {
    // The worker hears of no change: what it remembers of the endpoint stays as it was.
    const epoch = sinon.stub(stack.worker.revocations, 'epoch').returns('unheard');
    try {
      const customer = await stack.customer();
      const receivers: Receiver[] = [];
      for (let round = 0; round < 6; round++) {
        const receiver = await receive();
        receivers.push(receiver);
        await listenAt(stack, customer, receiver.url);
        const id = await sendTest(customer.live);
        const ids = await eventually(t, () =>
          receivers.flatMap(({ calls }) => calls.map(idOf)).includes(id)
            ? receiver.calls.map(idOf)
            : undefined,
        );
        t.deepEqual(ids, [id], `round ${round}`);
      }
      t.deepEqual(
        receivers.map(({ calls }) => calls.length),
        Array.from({ length: 6 }, () => 1),
      );
      for (const receiver of receivers) receiver.close();
    } finally {
      epoch.restore();
    }
  },
);

test.serial('two addresses set in the same millisecond are told apart', async (t) => {
  const { accountId } = await stack.customer();
  const { webhooks } = stack.api;
  const at = clock.now();
  const changed: number[] = [];
  for (const url of ['https://a.tessera.example/', 'https://b.tessera.example/']) {
    await stack.api.accounts.change(accountId, { webhookUrl: url }, ownerChange);
    await webhooks.enable(accountId, at);
    changed.push((await webhooks.endpoint(accountId))?.changedAt ?? 0);
  }
  t.deepEqual(changed, [at, at + 1]);
});

test.serial(
  'a delivery that is under way while the clock is put forward is verified at its own time',
  async (t) => {
    const customer = await stack.customer();
    const url = 'http://127.0.0.1:9/under-way';
    await listenAt(stack, customer, url);
    const [secret = ''] = await signingSecrets(stack.api, customer.accountId);
    const keys = [signingKey(secret)];
    const signedAt = (at: number) => ({
      headers: signedHeaders({ id: 'evt_1', at, body: '{}', keys }),
      ...{ body: '{}', path: '/' },
    });
    const underWay = signedAt(clock.now());
    const neverShown = signedAt(clock.now() + day);
    clock.forward(6 * day);
    await t.notThrowsAsync(verifyDelivery(url, underWay));
    await t.throwsAsync(verifyDelivery(url, neverShown), { message: /not signed by any account/ });
  },
);

test.serial('whatever text a body holds is what is kept of it', async (t) => {
  const { accountId } = await stack.customer();
  const texts = fc.sample(fc.string({ unit: 'binary', maxLength: 60 }), 200);
  const bodies = [
    ...texts,
    `'`,
    `\\`,
    `\\'`,
    `''); -- `,
    '? ?? :id',
    '\u0000\n\r\u001a"',
    '%_',
    '😀',
  ];
  const rows = bodies.map((body) => ({
    ...{ id: newId(), accountId, eventId: newId().replaceAll('-', ''), type: 'webhook.test', body },
    mode: 'live' as const,
    place: { kind: 'waiting' as const },
  }));
  t.is((await stack.api.webhooks.add(rows, clock.now())).size, bodies.length);
  const found = await Promise.all(rows.map(({ id }) => stack.api.webhooks.find(accountId, id)));
  t.deepEqual(
    found.map((delivery) => delivery?.body),
    bodies,
  );
  await stack.api
    .db('webhook_deliveries')
    .where({ account_id: idBytes(accountId) })
    .delete();
});

test.serial(
  'an event right behind an address that is set again arrives, and nothing stays held',
  async (t) => {
    const gone = await answering(410);
    const back = await receive();
    for (let round = 0; round < 3; round++) {
      const customer = await stack.customer();
      await listenAt(stack, customer, gone.url);
      const first = await sendTest(customer.live);
      await eventually(
        t,
        async () => (await webhookOf(customer)).status === 'disabled' || undefined,
      );
      t.is((await webhookOf(customer)).disabled_reason, 'gone');
      const held = await sendTest(customer.live);
      await listenAt(stack, customer, back.url);
      const next = await sendTest(customer.live);
      await eventually(t, () => {
        const ids = back.calls.map(idOf);
        return [first, held, next].every((id) => ids.includes(id)) || undefined;
      });
      await eventually(
        t,
        async () =>
          (await deliveriesOf(customer)).every(({ status }) => status === 'delivered') || undefined,
      );
      t.is((await webhookOf(customer)).status, 'active');
    }
    gone.close();
    back.close();
  },
);

test.serial(
  'what is held is replayed by a job that goes on in another process, and shows how far it is',
  async (t) => {
    const customer = await stack.customer();
    const back = await receive();
    await listenAt(stack, customer, back.url);
    await stack.stopWorkers('webhook');
    await add(customer, 250, 'held');
    await listenAt(stack, customer, back.url);
    const { data } = await customer.live.get('/v1/clients/me');
    const begun = { status: 'active', replay: { status: 'running', total: 250, released: 0 } };
    t.like(data.webhook, begun);
    const { webhooks } = stack.api;
    const replay = await webhooks.takeReplay(clock.now(), minute);
    t.is(replay?.total, 250);
    if (replay) await webhooks.release(replay, { now: clock.now(), limit: 100, againMs: second });
    t.like((await webhookOf(customer)).replay, { status: 'running', total: 250, released: 100 });
    clock.forward(2 * minute);
    await stack.startWorkers('webhook');
    await eventually(t, () => new Set(back.calls.map(idOf)).size === 250 || undefined, 20_000);
    await eventually(
      t,
      async () => (await webhookOf(customer)).replay?.status === 'finished' || undefined,
    );
    t.is((await webhookOf(customer)).replay?.released, 250);
    back.close();
  },
);

test.serial(
  'what a worker that is gone let wait goes out with the first of it that another finds',
  async (t) => {
    const customer = await stack.customer();
    const receiver = await receive();
    await stack.stopWorkers('webhook');
    await add(customer, 60, 'waiting');
    await stack.startWorkers('webhook');
    await listenAt(stack, customer, receiver.url);
    // One is due by the new address; the others, by themselves, as long as the clock stands still, never.
    await eventually(t, () => new Set(receiver.calls.map(idOf)).size === 60 || undefined);
    t.pass();
    receiver.close();
  },
);

test.serial('what was held for days gets its whole schedule when it is released', async (t) => {
  const customer = await stack.customer();
  const busy = await answering(500);
  await listenAt(stack, customer, busy.url);
  await add(customer, 1, 'held');
  clock.forward(6 * day);
  await listenAt(stack, customer, busy.url);
  const tried = await eventually(t, async () => {
    const [item] = await deliveriesOf(customer);
    return item?.attempts === 1 ? item : undefined;
  });
  t.is(tried.status, 'pending');
  t.truthy(tried.next_attempt_at);
  busy.close();
});

test.serial('an endpoint that asks for time with Retry-After gets it as a whole', async (t) => {
  const customer = await stack.customer();
  let open = false;
  const receiver = await receive((response) => {
    if (open) response.end();
    else response.writeHead(503, { 'retry-after': '120' }).end();
  });
  await listenAt(stack, customer, receiver.url);
  await sendTest(customer.live);
  await eventually(t, async () => (await webhookOf(customer)).status === 'paused' || undefined);
  open = true;
  await sendTest(customer.live);
  await sendTest(customer.live);
  clock.forward(60 * second);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  t.is(receiver.calls.length, 1, 'nothing before the time it asked for');
  clock.forward(70 * second);
  await eventually(t, () => receiver.calls.length === 4 || undefined);
  t.is((await webhookOf(customer)).status, 'active');
  receiver.close();
});

test.serial(
  'redelivering during an attempt makes one more attempt, and neither is lost',
  async (t) => {
    const customer = await stack.customer();
    const waiting: (() => void)[] = [];
    const receiver = await receive((response, call) => {
      if (call === 1) waiting.push(() => response.end());
      else response.writeHead(500).end();
    });
    await listenAt(stack, customer, receiver.url);
    await sendTest(customer.live);
    await eventually(t, () => waiting.length === 1 || undefined);
    const [item] = await deliveriesOf(customer);
    await customer.live.post(`/v1/clients/webhooks/deliveries/${item?.id}/redeliver`, undefined);
    for (const end of waiting) end();
    const after = await eventually(t, async () => {
      const [found] = await deliveriesOf(customer);
      return found?.attempts === 2 ? found : undefined;
    });
    t.is(after.status, 'delivered', 'what was delivered once stays so');
    const { data } = await customer.live.get(`/v1/clients/webhooks/deliveries/${item?.id}`);
    t.deepEqual(
      (data.attempts as { number: number; status: number }[]).map(({ number, status }) => [
        number,
        status,
      ]),
      [
        [1, 200],
        [2, 500],
      ],
    );
    const row = { id: idBytes(customer.accountId) };
    await stack.api.db('accounts').where(row).update({ webhook_url: null });
    const again = `/v1/clients/webhooks/deliveries/${item?.id}/redeliver`;
    const { error } = await customer.live.post(again, undefined);
    t.like(error, { code: 'VALIDATION_ERROR', details: [{ field: 'webhook_url' }] });
    receiver.close();
  },
);

test.serial(
  'five days, twenty failures on three days give an endpoint up; tests count for nothing',
  async (t) => {
    const customer = await stack.customer();
    const { accountId } = customer;
    const { webhooks } = stack.api;
    const dead = await answering(500);
    await listenAt(stack, customer, dead.url);
    await sendTest(customer.live);
    await eventually(t, async () => (await deliveriesOf(customer))[0]?.attempts === 1 || undefined);
    t.is((await webhookOf(customer)).status, 'active', 'a test that failed is no trouble');
    const { changedAt = 0 } = (await webhooks.endpoint(accountId)) ?? {};
    const late = { accountId, changedAt: changedAt - 1, value: 30 };
    await webhooks.noteFailures([late], clock.now());
    await webhooks.notePauses([{ ...late, value: clock.now() + hour }]);
    t.is((await webhookOf(customer)).status, 'active', 'of the address before it');
    await webhooks.noteFailures([{ ...late, changedAt }], clock.now());
    t.is((await webhookOf(customer)).status, 'failing');
    clock.forward(6 * day);
    const daysOfFailure = async () => {
      const row = await stack.api
        .db('accounts')
        .where({ id: idBytes(accountId) })
        .first();
      return Number(row.webhook_failing_days);
    };
    const fail = () => customer.live.send(stack.phone().number);
    await fail();
    await eventually(t, async () => (await daysOfFailure()) === 2 || undefined);
    t.is((await webhookOf(customer)).status, 'failing', 'two days are not three');
    clock.forward(day);
    await fail();
    await eventually(t, async () => (await webhookOf(customer)).status === 'disabled' || undefined);
    t.is((await webhookOf(customer)).disabled_reason, 'failing');
    dead.close();
  },
);

test.serial('deliveries and their attempts are kept 30 days', async (t) => {
  const customer = await stack.customer();
  const receiver = await receive();
  await listenAt(stack, customer, receiver.url);
  await sendTest(customer.live);
  await eventually(
    t,
    async () => (await deliveriesOf(customer))[0]?.status === 'delivered' || undefined,
  );
  const [item] = await deliveriesOf(customer);
  const attempts = () =>
    stack.api.db('webhook_attempts').where({ delivery_id: idBytes(item?.id ?? '') });
  const at = Date.now();
  await purgeOld({ ...stack.api, clock: { now: () => at + 29 * day } });
  t.is((await attempts()).length, 1);
  await purgeOld({ ...stack.api, clock: { now: () => at + 30 * day + hour } });
  t.is((await attempts()).length, 0);
  t.deepEqual(await deliveriesOf(customer), []);
  t.is(typeOf(receiver.calls[0] ?? { headers: {}, body: '{}', path: '' }), 'webhook.test');
  receiver.close();
});
