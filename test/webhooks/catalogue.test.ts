// The event catalogue: every type of the design, sound examples, what is rendered fits it, and what sequences promise.
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import test from 'ava';
import fc from 'fast-check';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';
import type { EventWire } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { withCost } from '../../lib/messages/cost.ts';
import { accountEvent, messageEvent } from '../../lib/messages/events.ts';
import {
  type Facts,
  joinFacts,
  type Message,
  noFacts,
  statusOf,
} from '../../lib/messages/rules.ts';
import { eventCatalogue } from '../../lib/webhooks/catalogue.ts';
import { render } from '../../lib/webhooks/render.ts';
import { sequenceOf } from '../../lib/webhooks/sequence.ts';
import { checkEvent } from '../support/contract.ts';

type Content = { schema: object; example: { type: string } };
type Operation = { post: { requestBody: { content: { 'application/json': Content } } } };

const webhooks = openApiDocument(routes).webhooks as Record<string, Operation>;

test('every type of the design is in the document, with an example that fits', (t) => {
  const types = [
    ...['otp.sent', 'otp.delivered', 'otp.verified', 'otp.failed', 'otp.expired', 'otp.completed'],
    ...['totp.enrolled', 'totp.verified', 'totp.disabled', 'telegram.linked', 'webhook.test'],
    ...['whatsapp.connected', 'whatsapp.disconnected', 'template.status_changed'],
    ...['billing.low_balance', 'billing.trial_exhausted', 'billing.plan_changed'],
    ...['capacity_request.updated', 'account.suspended', 'security.mfa_disabled'],
  ];
  for (const type of types) t.true(type in eventCatalogue, type);
  t.deepEqual(Object.keys(webhooks), Object.keys(eventCatalogue));
  const ajv = new Ajv2020({ strict: false });
  (addFormatsModule as unknown as (instance: Ajv2020) => void)(ajv);
  for (const [type, { post }] of Object.entries(webhooks)) {
    const { schema, example } = post.requestBody.content['application/json'];
    const validate = ajv.compile(schema);
    t.true(validate(example), `${type}: ${ajv.errorsText(validate.errors)}`);
    t.is(example.type, type);
  }
});

const message: Message = {
  ...{ id: newId(), accountId: newId(), mode: 'live', origin: 'send', phone: '+14155550123' },
  ...{ country: 'US', requestId: newId(), plan: 'per_message', priceMicros: 50_000 },
  idempotencyHash: null,
};
const accepted: Partial<Facts> = { channel: 'whatsapp', acceptedAt: 1_000, expiresAt: 301_000 };

const bodiesOf = (event: EventWire) =>
  render(event).map(
    ({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> },
  );

test('what is rendered fits its type, and says nothing that is ours alone', (t) => {
  const about = { accountId: message.accountId, mode: 'live' as const, at: 5_000, requestId: 'r' };
  const totp = accountEvent('totp.verified', {
    ...{ ...about, subject: 'x 1' },
    data: {
      ...{ phone: message.phone, enrollment_id: newId(), step: 7, price_micros: 2_000 },
      ...{ plan: 'pay_per_success', attempt_id: newId() },
    },
  });
  const failed = { ...accepted, failedAt: 9_000, failureReason: 'not_on_channel' as const };
  const events = [
    totp,
    messageEvent('otp.sent', message, 1_000, accepted),
    messageEvent('otp.failed', message, 9_000, failed),
    messageEvent('otp.failed', message, 9_000),
    messageEvent('otp.expired', message, 301_000, accepted),
  ];
  for (const event of events) for (const { body } of render(event)) checkEvent(body);
  t.deepEqual(Object.keys(bodiesOf(totp)[0]?.data ?? {}).sort(), [
    ...['cost', 'enrollment_id', 'phone', 'plan', 'sequence', 'step'],
  ]);
});

test('on the trial the summary waits until billing has said what the success cost', (t) => {
  const sent: Message = { ...message, mode: 'live', plan: 'trial' };
  const event = messageEvent('otp.verified', sent, 20_000, accepted);
  t.deepEqual(
    bodiesOf(event).map(({ type }) => type),
    ['otp.verified'],
  );
  for (const [plan, costMicros] of [['trial', 0] as const, ['pay_per_success', 50_000] as const]) {
    const [, summary] = bodiesOf(withCost(event, { plan, costMicros }));
    t.like(summary, { type: 'otp.completed', data: { cost: costMicros / 1_000_000 } });
  }
});

test('the summary says what a message cost, and over which channels it went', (t) => {
  const end = (type: 'otp.verified' | 'otp.failed' | 'otp.expired', plan: Message['plan']) =>
    bodiesOf(messageEvent(type, { ...message, plan }, 20_000, accepted))[1]?.data;
  t.like(end('otp.verified', 'pay_per_success'), { cost: 0.05, latency_ms: 19_000 });
  t.like(end('otp.expired', 'pay_per_success'), { cost: 0, latency_ms: null });
  t.like(end('otp.expired', 'per_message'), { cost: 0.05, status: 'expired' });
  t.like(end('otp.failed', 'per_message'), { cost: 0 });
  const event = messageEvent('otp.verified', message, 20_000, { ...accepted, channel: 'telegram' });
  const legs = [{ channel: 'whatsapp', acceptedAt: 500, deliveredAt: null }];
  const [, summary] = render(event, legs).map(({ body }) => JSON.parse(body));
  t.deepEqual(
    summary.data.legs.map(({ channel }: { channel: string }) => channel),
    ['whatsapp', 'telegram'],
  );
});

const facts = (more: Partial<Facts>): Facts => ({ ...noFacts, ...more });

/** What can happen to a message and what is announced of it. */
const happenings = {
  whatsapp: (at: number) => ({
    event: messageEvent('otp.sent', message, at, { ...accepted, acceptedAt: at }),
    facts: facts({ channel: 'whatsapp', acceptedAt: at, expiresAt: 301_000 }),
  }),
  delivered: (at: number) => ({
    event: messageEvent('otp.delivered', message, at, { ...accepted, deliveredAt: at }),
    facts: facts({ deliveredAt: at }),
  }),
  failed: (at: number) => ({
    event: messageEvent('otp.failed', message, at, { ...accepted, failedAt: at }),
    facts: facts({ failedAt: at, failureReason: 'not_delivered' }),
  }),
  expired: () => ({
    event: messageEvent('otp.expired', message, 301_000, { ...accepted, expiredAt: 301_000 }),
    facts: facts({ expiredAt: 301_000 }),
  }),
  verified: (at: number) => ({
    event: messageEvent('otp.verified', message, at, { ...accepted, verifiedAt: at }),
    facts: facts({ verifiedAt: at }),
  }),
};

const saidBy: Record<string, string> = {
  ...{ 'otp.sent': 'sent', 'otp.delivered': 'sent', 'otp.failed': 'failed' },
  ...{ 'otp.expired': 'expired', 'otp.verified': 'verified' },
};

test('in whatever order news arrive, the highest sequence says the state the message is in', (t) => {
  const names = Object.keys(happenings) as (keyof typeof happenings)[];
  fc.assert(
    fc.property(
      fc.shuffledSubarray(names, { minLength: 1 }),
      fc.array(fc.integer({ min: 2_000, max: 600_000 }), { minLength: 5, maxLength: 5 }),
      (chosen, times) => {
        const all = [happenings.whatsapp(1_000)].concat(
          chosen.map((name, index) => happenings[name](times[index] ?? 2_000)),
        );
        const joined = all.reduce((known, { facts: more }) => joinFacts(known, more), noFacts);
        // A failure is not announced of what has arrived, nor is a code verified or expired that failed for good.
        const last = all
          .filter(({ event }) => event.type !== 'otp.failed' || joined.deliveredAt === null)
          .filter(
            ({ event }) =>
              event.type !== 'otp.expired' ||
              joined.failedAt === null ||
              joined.deliveredAt !== null,
          )
          .toSorted((one, other) => sequenceOf(one.event) - sequenceOf(other.event))
          .at(-1);
        return saidBy[last?.event.type ?? ''] === statusOf(joined);
      },
    ),
  );
  t.pass();
});

test('Telegram comes behind WhatsApp, and each summary behind the news that ended its message', (t) => {
  const sent = (channel: 'whatsapp' | 'telegram') =>
    sequenceOf(messageEvent('otp.sent', message, 1_000, { ...accepted, channel }));
  t.true(sent('telegram') > sent('whatsapp'));
  const [news, summary] = bodiesOf(messageEvent('otp.verified', message, 2_000, accepted));
  t.true(Number(summary?.data.sequence) > Number(news?.data.sequence));
});
