// One own number in the place of another, leaving in a hurry, and what stands although nobody could be told of it.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import type { EventWire } from '../../lib/jobs.ts';
import {
  aBusiness,
  aCode,
  type Business,
  captureEvents,
  connect,
  detailsOf,
  signUp,
} from '../support/connections.ts';
import { control } from '../support/control.ts';
import { holdNext } from '../support/hold.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let events: EventWire[];

test.before(async () => {
  stack = await startStack('wabar', { workers: [] });
  events = captureEvents(stack);
});
test.after.always(() => stack?.close());

const eventsOf = ({ accountId }: Customer): [string, unknown][] =>
  events
    .filter((event) => event.account_id === accountId)
    .map(({ type, data }) => [type, data.phone_number_id]);

const leave = (customer: Customer) => customer.live.post('/v1/clients/waba/disconnect', undefined);

const isSubscribed = async ({ waba_id: waba }: Business): Promise<boolean> =>
  (await control<{ subscribed: boolean }>(stack.sim.url, 'PATCH', `/businesses/${waba}`, {}))
    .subscribed;

const bySignup = async (t: ExecutionContext, customer: Customer, business: Business) => {
  const answer = await signUp(customer.live, business, await aCode(stack, business));
  t.is(answer.status, 200, answer.text);
};

test.serial('a number that another one takes the place of is left and told of', async (t) => {
  const customer = await stack.customer();
  const [first, second] = [await aBusiness(stack), await aBusiness(stack)];
  await bySignup(t, customer, first);
  t.true(await isSubscribed(first));
  t.is((await connect(customer.live, second)).status, 200);
  t.false(await isSubscribed(first));
  t.deepEqual(eventsOf(customer), [
    ['whatsapp.connected', first.phone_number_id],
    // The last one says what holds now.
    ['whatsapp.disconnected', first.phone_number_id],
    ['whatsapp.connected', second.phone_number_id],
  ]);
});

test.serial('a new token for the same number is no disconnect', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await bySignup(t, customer, business);
  await bySignup(t, customer, business);
  t.true(await isSubscribed(business));
  t.deepEqual(
    eventsOf(customer).map(([type]) => type),
    ['whatsapp.connected', 'whatsapp.connected'],
  );
});

/** Neither Redis, nor MySQL for what is to be told, nor the broker takes a word any more. */
const withNobodyListening = async (work: () => Promise<void>): Promise<void> => {
  const { redis, announcer } = stack.api;
  const told = sinon.stub(redis, 'set').rejects(new Error('away'));
  const heard = sinon.stub(announcer, 'announce').rejects(new Error('away'));
  try {
    await work();
  } finally {
    told.restore();
    heard.restore();
  }
};

test.serial('a number is connected, and said to be, although nobody could be told', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await withNobodyListening(() => bySignup(t, customer, business));
  t.like(await detailsOf(customer), { phone_number_id: business.phone_number_id });
  await withNobodyListening(async () => {
    t.is((await leave(customer)).status, 200);
  });
  t.is(await detailsOf(customer), null);
});

test.serial('with Redis away the events of a connection are told all the same', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  const told = sinon.stub(stack.api.redis, 'set').rejects(new Error('away'));
  try {
    await bySignup(t, customer, business);
    t.is((await leave(customer)).status, 200);
  } finally {
    told.restore();
  }
  t.deepEqual(
    eventsOf(customer).map(([type]) => type),
    ['whatsapp.connected', 'whatsapp.disconnected'],
  );
});

test.serial(
  'asking for the template heals what it proves: the token, not number or ban',
  async (t) => {
    const customer = await stack.customer();
    const business = await aBusiness(stack);
    await connect(customer.live, business);
    const { connections, clock } = stack.api;
    const { id = '' } = (await connections.find(customer.accountId)) ?? {};
    const afterCheck = async (
      reason: Parameters<typeof connections.markBroken>[1],
    ): Promise<unknown> => {
      await connections.markBroken(id, reason, clock.now());
      const check = await customer.live.post('/v1/clients/waba/template/check', undefined);
      t.is(check.status, 200);
      const status = (await detailsOf(customer))?.status;
      await connections.heal(id, [reason]);
      return status;
    };
    t.is(await afterCheck('token_invalid'), 'connected');
    t.is(await afterCheck('permission_missing'), 'connected');
    t.is(await afterCheck('account_disabled'), 'broken');
    t.is(await afterCheck('number_not_accessible'), 'broken');
    t.is(await afterCheck('app_removed'), 'broken');
  },
);

test.serial('nobody keeps an owner from disconnecting by asking for something else', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await connect(customer.live, business);
  const check = () => customer.live.post('/v1/clients/waba/template/check', undefined);
  for (let time = 0; time < 29; time++) await check();
  t.is((await check()).status, 429);
  t.is((await leave(customer)).status, 200);
  t.is(await detailsOf(customer), null);
});

test.serial('a number connected while another one leaves stays', async (t) => {
  const customer = await stack.customer();
  const [first, second] = [await aBusiness(stack), await aBusiness(stack)];
  await bySignup(t, customer, first);
  // The disconnect is through with the first number and still talks to the provider about it.
  const held = holdNext(stack.api.connections, 'remove');
  const leaving = leave(customer);
  await held.reached;
  await bySignup(t, customer, second);
  held.release();
  t.is((await leaving).status, 200);
  t.like(await detailsOf(customer), { phone_number_id: second.phone_number_id });
  t.deepEqual(
    eventsOf(customer).filter(([type]) => type === 'whatsapp.disconnected'),
    [['whatsapp.disconnected', first.phone_number_id]],
  );
});

test.serial('a business that somebody comes to while it is left stays subscribed', async (t) => {
  const [leaver, comer] = [await stack.customer(), await stack.customer()];
  const business = await aBusiness(stack);
  await bySignup(t, leaver, business);
  // The leaver has found that nobody uses the business any more, and has not told the provider yet.
  const held = holdNext(stack.api.connections, 'ofBusiness');
  const leaving = leave(leaver);
  await held.reached;
  await bySignup(t, comer, business);
  held.release();
  t.is((await leaving).status, 200);
  t.like(await detailsOf(comer), { status: 'connected' });
  t.true(await isSubscribed(business));
});

test.serial('what is removed is what the event names, however calls cross', async (t) => {
  const customer = await stack.customer();
  const businesses = await Promise.all(Array.from({ length: 3 }, () => aBusiness(stack)));
  await Promise.all([
    ...businesses.map((business) => connect(customer.live, business)),
    ...[leave(customer), leave(customer), leave(customer)],
  ]);
  const now = await detailsOf(customer);
  const heard = eventsOf(customer);
  for (const { phone_number_id: number } of businesses) {
    const count = (type: string) =>
      heard.filter(([each, about]) => each === type && about === number).length;
    const open = now?.phone_number_id === number ? 1 : 0;
    t.is(count('whatsapp.connected') - count('whatsapp.disconnected'), open);
  }
});

test.serial(
  'numbers that a key connects stand in the security log and in its revocation',
  async (t) => {
    const customer = await stack.customer();
    const { session, liveKeyId } = customer;
    const [first, second] = [await aBusiness(stack), await aBusiness(stack)];
    await connect(customer.live, first);
    await connect(customer.live, second);
    await leave(customer);
    t.is((await leave(customer)).status, 200);
    const wanted = [
      ['whatsapp_disconnected', second.phone_number_id, null],
      ['whatsapp_connected', first.phone_number_id, second.phone_number_id],
      ['whatsapp_connected', null, first.phone_number_id],
    ];
    type Entry = {
      action: string;
      credential_id: string;
      changes: { from: unknown; to: unknown }[];
    };
    const log = (await session.get('/v1/clients/security/log')).data.items as Entry[];
    const own = log.filter(({ credential_id: id }) => id === liveKeyId);
    t.deepEqual(
      own.map(({ action, changes: [change] }) => [action, change?.from, change?.to]),
      wanted,
    );
    const revoked = await session.call('DELETE', `/v1/clients/keys/${liveKeyId}`);
    t.deepEqual(
      (revoked.data.changes as { action: string; settings: string[] }[]).map(
        ({ action, settings }) => [action, ...settings],
      ),
      wanted.map(([action]) => [action, 'whatsapp_number']),
    );
  },
);

test.serial('a key that is revoked while WhatsApp is asked connects nothing', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  const held = holdNext(stack.api.connections, 'holder');
  const connecting = connect(customer.live, business);
  await held.reached;
  await customer.session.call('DELETE', `/v1/clients/keys/${customer.liveKeyId}`);
  held.release();
  t.is((await connecting).error.code, 'INVALID_API_KEY');
  t.is(await stack.api.connections.holder(business.phone_number_id), undefined);
});
