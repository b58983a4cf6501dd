// Webhooks as their receiver looks into them: deliveries, attempts, once more, a test (design section 4).
import { integer, list, nullable, object, oneOf, optional, text } from '../../lib/kernel/schema.ts';
import { readableMode, requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { eventCatalogue } from '../../lib/webhooks/catalogue.ts';
import { findDelivery, listDeliveries, redeliver, sendTest } from '../../lib/webhooks/manage.ts';
import { changesOf } from '../acting.ts';
import { listQuery, mode, moment, nullableTimestamp, page, timestamp } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'Webhooks';
const base = '/v1/clients/webhooks';

const status = () =>
  oneOf('pending', 'delivered', 'failed', 'held').description(
    'held: the endpoint was given up; what is held goes out when it is set again.',
  );

const facts = {
  id: text().guid(),
  event_id: text().description('The webhook-id header: the same in every attempt.'),
  type: text().description('Event type.').example('otp.verified'),
  mode: mode(),
  status: status(),
  next_attempt_at: nullableTimestamp(),
  created_at: timestamp(),
};

const deliveries = route({
  ...{ method: 'GET', path: `${base}/deliveries`, tag, auth: 'account' },
  summary: 'Deliveries, newest first.',
  query: object({
    ...listQuery(100),
    type: optional(oneOf(...Object.keys(eventCatalogue)).description('Only this event type.')),
    status: optional(status()),
    mode: optional(mode().description('Only these; a key reads its own mode alone.')),
    from: optional(moment().description('Made at or after.')),
    to: optional(moment().description('Made before.')),
  }),
  data: page(object({ ...facts, attempts: integer().min(0) })),
  handle: async (app, { account, keyMode, query }) => {
    const filter = { ...query, mode: readableMode(keyMode, query.mode) };
    await takeRead(app.reads, 'read', account.id);
    return listDeliveries(app, account.id, filter);
  },
});

const params = object({ id: text().guid().description('Id of a delivery.') });

const delivery = route({
  ...{ method: 'GET', path: `${base}/deliveries/{id}`, tag, auth: 'account' },
  summary: 'One delivery with every attempt.',
  errors: ['NOT_FOUND'],
  params,
  data: object({
    ...facts,
    body: text().description('What is posted, byte by byte.'),
    attempts: list(
      object({
        number: integer().min(1),
        at: timestamp(),
        status: nullable(integer()).description('HTTP status; null: there was no answer.'),
        reason: nullable(text()).description(
          'Why it did not count as delivered. our_network: the fault was ours; the attempt is made again and counts for nothing.',
        ),
        duration_ms: integer().min(0),
      }),
    ),
  }),
  handle: async (app, { account, keyMode, params: { id } }) => {
    await takeRead(app.reads, 'read', account.id);
    return findDelivery(app, account.id, { id: id.toLowerCase(), mode: readableMode(keyMode) });
  },
});

const outlook = {
  status: oneOf('pending', 'held').description(
    'held: the endpoint was given up, so nothing goes out until webhook_url is set again.',
  ),
  disabled_reason: nullable(oneOf('gone', 'failing', 'unsafe_address')).description(
    'Why it was given up; null with pending.',
  ),
};

const again = route({
  ...{ method: 'POST', path: `${base}/deliveries/{id}/redeliver`, tag, auth: 'account' },
  summary: 'Delivers once more, with the same webhook-id.',
  errors: ['VALIDATION_ERROR', 'NOT_FOUND', 'REAUTH_REQUIRED'],
  params,
  data: object({ id: text().guid(), ...outlook }),
  handle: async (app, { account, session, keyMode, params: { id } }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'webhook_change', changesOf({ account, session }));
    return redeliver(app, account.id, { id: id.toLowerCase(), mode: readableMode(keyMode) });
  },
});

const test = route({
  ...{ method: 'POST', path: `${base}/test`, tag, auth: 'account' },
  summary: 'Sends a webhook.test event to the address of the settings.',
  errors: ['VALIDATION_ERROR', 'REAUTH_REQUIRED'],
  data: object({
    event_id: text().description('The webhook-id header of the delivery.'),
    ...outlook,
  }),
  handle: async (app, { account, session, keyMode, requestId }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'webhook_change', changesOf({ account, session }));
    return sendTest(app, { accountId: account.id, requestId });
  },
});

export const webhookRoutes = [deliveries, delivery, again, test];
