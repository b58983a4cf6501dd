// Sends of an account with an own number: from where, with which template, and what happens when it breaks or goes.
import test, { type ExecutionContext } from 'ava';
import type { EventWire } from '../../lib/jobs.ts';
import {
  aBusiness,
  type Business,
  captureEvents,
  connect,
  detailsOf,
  flipTemplate,
  senderOf,
} from '../support/connections.ts';
import { control, linkTelegram } from '../support/control.ts';
import { holdNext } from '../support/hold.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let events: EventWire[];

test.before(async () => {
  stack = await startStack('wabas');
  events = captureEvents(stack);
});
test.after.always(() => stack?.close());

const typesOf = ({ accountId }: Customer): string[] =>
  events.filter((event) => event.account_id === accountId).map(({ type }) => type);

const create = ({ live }: Customer) => live.post('/v1/clients/waba/template/create', {});
const check = ({ live }: Customer) => live.post('/v1/clients/waba/template/check', {});
const leave = ({ live }: Customer) => live.post('/v1/clients/waba/disconnect', {});

const templateOf = async (customer: Customer): Promise<unknown> =>
  (await detailsOf(customer))?.template.status;

/** Waits past the limit on reads, which a client that polls would meet. */
const storedOf = ({ accountId }: Customer) => stack.api.connections.find(accountId);

const untilTemplate = (
  t: ExecutionContext,
  customer: Customer,
  status: string,
  language = 'en_US',
) =>
  eventually(t, async () => {
    const templates = (await storedOf(customer))?.templates ?? [];
    return templates.some((one) => one.language === language && one.status === status) || undefined;
  });

const untilStatus = (t: ExecutionContext, customer: Customer, status: string) =>
  eventually(t, async () => (await storedOf(customer))?.status === status || undefined);

/** A customer with an own number and an approved template. */
const ready = async (t: ExecutionContext): Promise<{ customer: Customer; business: Business }> => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  t.is((await connect(customer.live, business)).status, 200);
  t.is((await create(customer)).status, 200);
  await untilTemplate(t, customer, 'approved');
  return { customer, business };
};

/** Sends to a new phone and answers the number it came from, or the error. */
const sent = async (t: ExecutionContext, customer: Customer): Promise<unknown> => {
  const phone = stack.phone();
  const answer = await customer.live.send(phone.number);
  if (answer.status !== 200) return answer.error.code;
  return eventually(t, () => senderOf(phone));
};

const untilSent = (t: ExecutionContext, customer: Customer, from: unknown) =>
  eventually(t, async () => (await sent(t, customer)) === from || undefined, 3_000);

test.serial(
  'from the connection on sends go out from the own number, and back after the disconnect',
  async (t) => {
    const customer = await stack.customer();
    const business = await aBusiness(stack);
    t.is(await sent(t, customer), shared.whatsapp.phoneNumberId);
    await connect(customer.live, business);
    await create(customer);
    await untilTemplate(t, customer, 'approved');
    await untilSent(t, customer, business.phone_number_id);
    // The allowance of a trial is the shared number's: what the own one sends uses none of it.
    const used = async () =>
      (await stack.api.ledger.countShared(customer.accountId, 100)).unverified;
    const before = await used();
    t.true(before >= 1);
    t.is(await sent(t, customer), business.phone_number_id);
    t.is(await used(), before);
    for (let call = 0; call < 2; call++) {
      const answer = await leave(customer);
      t.deepEqual([answer.status, answer.data], [200, { disconnected: true }]);
    }
    t.is(await detailsOf(customer), null);
    await untilSent(t, customer, shared.whatsapp.phoneNumberId);
    t.deepEqual(typesOf(customer), [
      ...['whatsapp.connected', 'template.status_changed', 'template.status_changed'],
      'whatsapp.disconnected',
    ]);
    t.is((await check(customer)).error.code, 'NOT_FOUND');
  },
);

test.serial('a connection and its end hold in another process within a second', async (t) => {
  const customer = await stack.customer();
  const isShared = async () => (await stack.worker.resolveSender(customer.accountId))?.shared;
  t.true(await isShared());
  await connect(customer.live, await aBusiness(stack));
  await eventually(t, async () => (await isShared()) === false || undefined, 1_000);
  await leave(customer);
  await eventually(t, async () => (await isShared()) || undefined, 1_000);
  t.pass();
});

test.serial('other accounts go on sending from the shared number', async (t) => {
  const { customer, business } = await ready(t);
  const other = await stack.customer();
  await untilSent(t, customer, business.phone_number_id);
  t.is(await sent(t, other), shared.whatsapp.phoneNumberId);
});

test.serial(
  'a template that is not approved is TEMPLATE_NOT_READY, or Telegram for those who linked it',
  async (t) => {
    const customer = await stack.customer();
    const business = await aBusiness(stack);
    await control(stack.sim.url, 'PUT', '/templates/review', { review: 'manual' });
    t.teardown(() => control(stack.sim.url, 'PUT', '/templates/review', { review: 'auto' }));
    await connect(customer.live, business);
    await untilSent(t, customer, 'TEMPLATE_NOT_READY');
    const created = await create(customer);
    t.deepEqual(created.data.template, { name: 'otp_code', language: 'en_US', status: 'pending' });
    t.is(await sent(t, customer), 'TEMPLATE_NOT_READY');
    const linked = stack.phone();
    await linkTelegram(customer, linked);
    t.is((await customer.live.send(linked.number)).status, 200);
    t.is((await linked.messages())[0]?.channel, 'telegram');

    await flipTemplate(stack, business, 'APPROVED');
    await untilTemplate(t, customer, 'approved');
    await untilSent(t, customer, business.phone_number_id);
    await flipTemplate(stack, business, 'PAUSED');
    await untilTemplate(t, customer, 'paused');
    await untilSent(t, customer, 'TEMPLATE_NOT_READY');
    const changes = events
      .filter(({ account_id, type }) => account_id === customer.accountId && /^template/.test(type))
      .map(({ data }) => data.status);
    t.deepEqual(changes, ['pending', 'approved', 'paused']);
  },
);

test.serial('creating again adopts what is there, checking asks anew', async (t) => {
  const { customer, business } = await ready(t);
  t.is(((await create(customer)).data.template as { status: string }).status, 'approved');
  const { db, connections } = stack.api;
  const found = await connections.find(customer.accountId);
  await db('whatsapp_templates').update({ status: 'pending' });
  t.is(((await check(customer)).data.template as { status: string }).status, 'approved');
  t.is(await templateOf(customer), 'approved');
  const graph = `${stack.sim.url}/graph/v25.0/${business.waba_id}/message_templates?name=otp_code`;
  const headers = { authorization: `Bearer ${business.access_token}` };
  await fetch(graph, { method: 'DELETE', headers });
  t.is(((await check(customer)).data.template as { status: string }).status, 'not_created');
  t.is(found?.status, 'connected');
});

test.serial('a change of language keeps the approved template until the new one is', async (t) => {
  const { customer, business } = await ready(t);
  await untilSent(t, customer, business.phone_number_id);
  await control(stack.sim.url, 'PUT', '/templates/review', { review: 'auto' });
  await stack.api
    .db('accounts')
    .where({ email: customer.email })
    .update({ template_language: 'ar' });
  await stack.api.revocations.announce();
  t.like((await detailsOf(customer))?.template, { language: 'ar', status: 'not_created' });
  t.is(await sent(t, customer), business.phone_number_id);
  const created = await create(customer);
  t.like(created.data.template, { language: 'ar' });
  await untilTemplate(t, customer, 'approved', 'ar');
  const uses = async () =>
    (await stack.worker.resolveSender(customer.accountId))?.templateLanguage === 'ar' || undefined;
  await eventually(t, uses, 3_000);
  t.is(await sent(t, customer), business.phone_number_id);
});

const ownState = async (customer: Customer) =>
  (await customer.live.get('/health/channels')).data.whatsapp as Record<string, unknown>;

test.serial(
  'a token that expires breaks the connection, once and visibly; a reconnect mends it',
  async (t) => {
    const { customer, business } = await ready(t);
    await untilSent(t, customer, business.phone_number_id);
    t.deepEqual((await ownState(customer)).own_number, { status: 'ok', since: null });
    await control(stack.sim.url, 'DELETE', `/businesses/${business.waba_id}/tokens`);
    t.is(await sent(t, customer), 'DELIVERY_FAILED');
    await untilStatus(t, customer, 'broken');
    const broken = await detailsOf(customer);
    t.is(broken?.broken_reason, 'token_invalid');
    const shown = await ownState(customer);
    t.deepEqual(shown.own_number, { status: 'down', since: broken?.broken_at });
    await eventually(t, async () => {
      const { connections } = await ownState(customer);
      return (connections as { broken: number }).broken >= 1 || undefined;
    });
    const platform = (await stack.anybody.get('/health/channels')).data.whatsapp;
    t.deepEqual(Object.keys(platform as object).sort(), [
      ...['connections', 'own_number', 'since', 'status'],
    ]);
    t.is((platform as Record<string, unknown>).own_number, null);

    // Known everywhere, so the provider is not asked any more.
    await eventually(t, async () => {
      const sender = await stack.worker.resolveSender(customer.accountId);
      return (sender && !sender.shared && sender.broken) || undefined;
    });
    const asked = () => stack.sim.stats();
    const errors = JSON.stringify(asked()).match(/"error_190":(\d+)/)?.[1];
    t.is(await sent(t, customer), 'DELIVERY_FAILED');
    t.is(JSON.stringify(asked()).match(/"error_190":(\d+)/)?.[1], errors);
    t.is((await detailsOf(customer))?.broken_at, broken?.broken_at);
    const linked = stack.phone();
    await linkTelegram(customer, linked);
    t.is((await customer.live.send(linked.number)).status, 200);
    t.is((await linked.messages())[0]?.channel, 'telegram');
    t.is((await check(customer)).error.code, 'VALIDATION_ERROR');
    // The shared number is not touched by it.
    t.is(await sent(t, await stack.customer()), shared.whatsapp.phoneNumberId);

    const { code } = await control<{ code: string }>(
      ...([stack.sim.url, 'POST', `/businesses/${business.waba_id}/code`] as const),
    );
    const again = await customer.live.post('/v1/clients/waba/embedded-signup', {
      ...{ code, waba_id: business.waba_id, phone_number_id: business.phone_number_id },
    });
    t.is(again.status, 200, again.text);
    t.like(again.data.connection, { status: 'connected', template: { status: 'approved' } });
    await untilSent(t, customer, business.phone_number_id);
  },
);

test.serial('an account that is banned and reinstated is broken meanwhile', async (t) => {
  const { customer, business } = await ready(t);
  const update = (state: string) =>
    control(stack.sim.url, 'POST', `/businesses/${business.waba_id}/account-update`, {
      ...{ event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: state } },
    });
  const until = (status: string) => untilStatus(t, customer, status);
  await update('DISABLE');
  await until('broken');
  await untilSent(t, customer, 'DELIVERY_FAILED');
  await update('REINSTATE');
  await until('connected');
  await untilSent(t, customer, business.phone_number_id);
});

test.serial('what an own number lacks is never the shared number’s fault', async (t) => {
  const { customer, business } = await ready(t);
  await untilSent(t, customer, business.phone_number_id);
  for (const whatsapp of ['error:131042', 'failed:131042']) {
    const phone = stack.phone();
    await phone.behave({ whatsapp });
    const answer = await customer.live.send(phone.number);
    t.is(answer.error.code, 'DELIVERY_FAILED', whatsapp);
  }
  t.is((await detailsOf(customer))?.status, 'connected', 'a payment problem can be mended there');
});

test.serial('disconnecting by a session needs a fresh proof', async (t) => {
  const { customer } = await ready(t);
  await stack.api.db('sessions').update({ proven_at: Date.now() - 11 * 60_000 });
  await stack.api.revocations.announce();
  const path = '/v1/clients/waba/disconnect';
  const refused = await eventually(t, async () => {
    const answer = await customer.session.post(path, {});
    return answer.status === 200 ? t.fail('disconnected without a proof') : answer;
  });
  t.is(refused.error.code, 'REAUTH_REQUIRED');
  t.not(await detailsOf(customer), null);
  const other = await aBusiness(stack);
  t.is((await connect(customer.session, other)).error.code, 'REAUTH_REQUIRED');
});

test.serial('sends ask MySQL for the number once, until something changes', async (t) => {
  const { customer, business } = await ready(t);
  await untilSent(t, customer, business.phone_number_id);
  const { connections, resolveSender } = stack.worker;
  const { find } = connections;
  let asked = 0;
  connections.find = (accountId) => {
    if (accountId === customer.accountId) asked++;
    return find(accountId);
  };
  t.teardown(() => {
    connections.find = find;
  });
  await resolveSender(customer.accountId);
  const before = asked;
  for (let call = 0; call < 50; call++) await resolveSender(customer.accountId);
  // Other tests of this file may have announced something in between.
  t.true(asked - before <= 2, `${asked - before}`);
});

test.serial(
  'a send that waits while its number is left is not sent from the shared one',
  async (t) => {
    const { customer } = await ready(t);
    const phone = stack.phone();
    await stack.stopWorkers('whatsapp');
    const published = holdNext(stack.api.broker, 'publish');
    const sending = customer.live.send(phone.number);
    await published.reached;
    published.release();
    const left = await leave(customer);
    await stack.startWorkers('whatsapp');
    t.is(left.status, 200);
    const answer = await sending;
    t.not(answer.status, 200, answer.text);
    t.deepEqual(await phone.messages(), []);
    const next = await customer.live.send(stack.phone().number);
    t.is(next.status, 200, 'the next one meets the rules of the shared number');
  },
);
