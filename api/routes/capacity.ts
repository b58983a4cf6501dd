// Requests for more capacity: made, read and taken back (spec sections 2, 4 and 8).
import {
  cancelCapacity,
  findCapacity,
  listCapacity,
  requestCapacity,
  wrapped,
} from '../../lib/capacity/request.ts';
import { capacityBounds, schemaVersion } from '../../lib/capacity/rules.ts';
import { plainLines } from '../../lib/kernel/plain-text.ts';
import { integer, nullable, object, oneOf, optional, text } from '../../lib/kernel/schema.ts';
import { requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { changesOf } from '../acting.ts';
import { idNamed, listQuery, nullableTimestamp, page, timestamp } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'Limits and capacity';

const perMinute = (about: string) =>
  integer()
    .min(capacityBounds.sustained.min)
    .max(capacityBounds.sustained.max)
    .description(about)
    .example(1_000);

const wishes = {
  requested_sustained_per_minute: perMinute('Sends a minute that are asked for.'),
  requested_burst_per_10_seconds: perMinute('Sends in ten seconds that are asked for.'),
  expected_sustained_per_minute: perMinute('Sends a minute that are expected as a rule.'),
  expected_peak_per_minute: perMinute('Sends a minute that are expected at the peak.'),
};

/** A request as its owner sees it. */
export const capacityRequest = () =>
  object({
    id: text().guid(),
    ...wishes,
    business_justification: text(),
    supporting_facts: nullable(text()),
    status: oneOf('pending', 'approved', 'rejected', 'cancelled'),
    created_at: timestamp(),
    updated_at: timestamp(),
    cancelled_at: nullableTimestamp(),
    reviewed_at: nullableTimestamp(),
  });

const wrapper = () =>
  object({ schema_version: oneOf(schemaVersion), capacity_request: capacityRequest() });

const create = route({
  ...{ method: 'POST', path: '/v1/clients/capacity-requests', tag, auth: 'account' },
  summary: 'Asks for more capacity; one request at a time is pending.',
  status: 201,
  errors: ['REAUTH_REQUIRED', 'CAPACITY_REQUEST_PENDING'],
  body: object({
    ...wishes,
    business_justification: plainLines()
      .min(capacityBounds.justification.min)
      .max(capacityBounds.justification.max)
      .description('Why, 20 to 2000 characters.'),
    supporting_facts: optional(
      nullable(plainLines().max(capacityBounds.facts.max)).description('What supports it.'),
    ),
  }),
  data: wrapper(),
  handle: async (app, { account, session, keyMode, body, requestId }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'connect', changesOf({ account, session }));
    const wish = {
      accountId: account.id,
      sustained: body.requested_sustained_per_minute,
      burst: body.requested_burst_per_10_seconds,
      expectedSustained: body.expected_sustained_per_minute,
      expectedPeak: body.expected_peak_per_minute,
      justification: body.business_justification,
      facts: body.supporting_facts ?? null,
    };
    return wrapped(await requestCapacity(app, wish, requestId));
  },
});

const listRoute = route({
  ...{ method: 'GET', path: '/v1/clients/capacity-requests', tag, auth: 'account' },
  summary: 'The requests of the account, newest first.',
  query: object(listQuery(100)),
  data: page(capacityRequest()),
  handle: async (app, { account, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return listCapacity(app, account.id, query);
  },
});

const params = object({ id: text().description('Id of a request.') });

const get = route({
  ...{ method: 'GET', path: '/v1/clients/capacity-requests/{id}', tag, auth: 'account' },
  summary: 'One request.',
  errors: ['NOT_FOUND'],
  params,
  data: wrapper(),
  handle: async (app, { account, params: { id } }) => {
    await takeRead(app.reads, 'read', account.id);
    return wrapped(await findCapacity(app, account.id, idNamed(id)));
  },
});

const cancel = route({
  ...{ method: 'DELETE', path: '/v1/clients/capacity-requests/{id}', tag, auth: 'account' },
  summary: 'Takes a pending request back.',
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  params,
  data: wrapper(),
  handle: async (app, { account, session, keyMode, params: { id }, requestId }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'connect', changesOf({ account, session }));
    const given = { accountId: account.id, id: idNamed(id), requestId };
    return wrapped(await cancelCapacity(app, given));
  },
});

export const capacityRoutes = [create, listRoute, get, cancel];
