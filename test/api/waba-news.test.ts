// What WhatsApp says by itself of own numbers: signed, in any order, more than once, and about others too.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { type EventWire, jobs } from '../../lib/jobs.ts';
import {
  aBusiness,
  type Business,
  captureEvents,
  connect,
  detailsOf,
  fault,
  flipTemplate,
} from '../support/connections.ts';
import { holdNext } from '../support/hold.ts';
import { openQueues, type Queues, settled } from '../support/queues.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let events: EventWire[];
let queues: Queues;

test.before(async () => {
  stack = await startStack('waban');
  events = captureEvents(stack);
  queues = await openQueues(stack.config.amqpUrls);
});
test.after.always(async () => {
  await queues?.close();
  await stack?.close();
});

const post = (body: string, secret: string = shared.whatsapp.appSecret) => {
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers: [string, string][] = [
    ['Content-Type', 'application/json'],
    ['X-Hub-Signature-256', `sha256=${signature}`],
  ];
  return sendRaw(stack.url, { method: 'POST', path: '/v1/inbound/whatsapp', headers, body });
};

type News = { field: string; value: unknown; at?: number; id?: string };

const envelope = (business: Business, ...news: News[]): string =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: news.map(({ field, value, at, id }) => ({
      id: id ?? business.waba_id,
      ...(at === undefined ? {} : { time: at }),
      changes: [{ field, value }],
    })),
  });

const aboutTemplate = (event: string, at: number, more: Record<string, unknown> = {}): News => ({
  ...{ field: 'message_template_status_update', at },
  value: {
    ...{ event, message_template_id: 1, message_template_name: 'otp_code' },
    ...{ message_template_language: 'en-US', reason: null, ...more },
  },
});

const connected = async (): Promise<{ customer: Customer; business: Business }> => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await connect(customer.live, business);
  return { customer, business };
};

const changesOf = ({ accountId }: Customer) =>
  events.filter(
    ({ type, account_id: of }) => type === 'template.status_changed' && of === accountId,
  );

const now = () => Math.floor(Date.now() / 1000);

test.serial('news in the wrong order and twice ends at the newest, and is told once', async (t) => {
  const { customer, business } = await connected();
  const at = now();
  const [first, second] = [aboutTemplate('APPROVED', at), aboutTemplate('PAUSED', at + 5)];
  for (const one of [first, second, first, second, second]) {
    t.is((await post(envelope(business, one))).status, 200);
    await settled(t, stack, queues);
  }
  t.is((await detailsOf(customer))?.template.status, 'paused');
  const ids = new Set(changesOf(customer).map(({ id }) => id));
  t.is(ids.size, 2, 'what came again is the same event again');
  t.deepEqual(
    changesOf(customer)
      .slice(0, 2)
      .map(({ data }) => [data.status, data.previous_status]),
    [
      ['approved', 'not_created'],
      ['paused', 'approved'],
    ],
  );
});

test.serial(
  'several changes of one call are taken in their order, others’ are passed over',
  async (t) => {
    const { customer, business } = await connected();
    const at = now();
    const news = [
      aboutTemplate('APPROVED', at, { message_template_language: 'x'.repeat(40) }),
      aboutTemplate('PENDING', at),
      aboutTemplate('APPROVED', at + 1),
      aboutTemplate('REJECTED', at + 2, { message_template_name: 'greeting' }),
      { ...aboutTemplate('REJECTED', at + 3), id: '999999' },
      { field: 'something_new', value: { event: 'X' } },
      { field: 'account_update', value: null },
      { field: 'message_template_status_update', value: { event: 'APPROVED' } },
    ];
    t.is((await post(envelope(business, ...news))).status, 200);
    await settled(t, stack, queues);
    t.is((await detailsOf(customer))?.template.status, 'approved');
    t.is(changesOf(customer).length, 2);
    for (const { name } of jobs) t.is(await queues.depth(`${name}.dead`), 0, name);
  },
);

test.serial('news that comes while the provider is asked outlasts its older answer', async (t) => {
  const { customer, business } = await connected();
  const { management, connections } = stack.api;
  const until = (status: string) =>
    eventually(t, async () => {
      const found = await connections.find(customer.accountId);
      return found?.templates.some((one) => one.status === status) || undefined;
    });
  const creation = holdNext(management, 'createTemplate');
  const creating = customer.live.post('/v1/clients/waba/template/create', {});
  await creation.reached;
  await until('approved');
  creation.release();
  t.like((await creating).data.template, { status: 'approved' });

  const listing = holdNext(management, 'listTemplates');
  const checking = customer.live.post('/v1/clients/waba/template/check', {});
  await listing.reached;
  await flipTemplate(stack, business, 'PAUSED');
  await until('paused');
  listing.release();
  t.like((await checking).data.template, { status: 'paused' });
  t.is((await detailsOf(customer))?.template.status, 'paused');
  t.deepEqual(
    changesOf(customer).map(({ data }) => data.status),
    ['approved', 'paused'],
  );
});

test.serial('news that Meta did not sign changes nothing', async (t) => {
  const { customer, business } = await connected();
  const body = envelope(business, aboutTemplate('APPROVED', now()));
  t.is((await post(body, 'another secret')).status, 403);
  await settled(t, stack, queues);
  t.is((await detailsOf(customer))?.template.status, 'not_created');
});

test.serial('a change of the number is read back, whatever the news says', async (t) => {
  const { customer, business } = await connected();
  const row = () => stack.api.db('whatsapp_connections').where({ waba_id: business.waba_id });
  await row().update({ quality_rating: 'red' });
  const value = { display_phone_number: '1', event: 'ONBOARDING' };
  const body = envelope(business, { field: 'phone_number_quality_update', value });
  await post(body);
  await settled(t, stack, queues);
  t.is((await detailsOf(customer))?.quality_rating, 'green');
  // A provider that refuses is not asked for ever.
  await row().update({ quality_rating: 'red' });
  await fault(stack, { call: `GET ${business.phone_number_id}`, code: 190 });
  await post(body);
  await settled(t, stack, queues);
  t.is((await detailsOf(customer))?.quality_rating, 'red');
  t.is(await queues.depth('whatsapp.status.dead'), 0);
});

test.serial('an app that was removed breaks the connections of the account', async (t) => {
  const { customer, business } = await connected();
  const value = { event: 'PARTNER_REMOVED', waba_info: { waba_id: business.waba_id } };
  await post(envelope(business, { field: 'account_update', value, id: '123' }));
  await settled(t, stack, queues);
  t.like(await detailsOf(customer), { status: 'broken', broken_reason: 'app_removed' });
});

test.serial(
  'news of the account in the wrong order ends at the newest; of before, it is none',
  async (t) => {
    const { customer, business } = await connected();
    const about = (value: Record<string, unknown>, at: number): News => ({
      ...{ field: 'account_update', at, id: '123' },
      value: { ...value, waba_info: { waba_id: business.waba_id } },
    });
    const ban = (state: string, at: number) =>
      about({ event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: state } }, at);
    const at = now() + 60;
    const after = async (one: News): Promise<unknown> => {
      await post(envelope(business, one));
      await settled(t, stack, queues);
      return (await detailsOf(customer))?.status;
    };
    t.is(await after(about({ event: 'PARTNER_REMOVED' }, at - 3_600)), 'connected');
    t.is(await after(ban('DISABLE', at)), 'broken');
    t.is(await after(ban('REINSTATE', at + 5)), 'connected');
    t.is(await after(ban('DISABLE', at)), 'connected', 'told again');
    t.is(await after(ban('DISABLE', at + 9)), 'broken');
  },
);
