// Limits and capacity: the usage and limits document, and requests for more (spec sections 2, 4 and 8).

import { limitsDocument } from '../../lib/capacity/document.ts';
import {
  cancelCapacity,
  findCapacity,
  listCapacity,
  requestCapacity,
  wrapped,
} from '../../lib/capacity/request.ts';
import { capacityBounds, schemaVersion } from '../../lib/capacity/rules.ts';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import {
  decimal,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
} from '../../lib/kernel/schema.ts';
import { requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { listQuery, nullableTimestamp, page, timestamp, uuid } from '../fields.ts';
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

const capacityRequest = () =>
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
  errors: ['REAUTH_REQUIRED'],
  body: object({
    ...wishes,
    business_justification: text()
      .min(capacityBounds.justification.min)
      .max(capacityBounds.justification.max)
      .description('Why, 20 to 2000 characters.'),
    supporting_facts: optional(
      nullable(text().max(capacityBounds.facts.max)).description('What supports it.'),
    ),
  }),
  data: wrapper(),
  handle: async (app, { account, keyMode, body, requestId }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'connect', account.id);
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

const params = object({ id: uuid().description('Id of a request.') });

const get = route({
  ...{ method: 'GET', path: '/v1/clients/capacity-requests/{id}', tag, auth: 'account' },
  summary: 'One request.',
  errors: ['NOT_FOUND'],
  params,
  data: wrapper(),
  handle: async (app, { account, params: { id } }) => {
    await takeRead(app.reads, 'read', account.id);
    return wrapped(await findCapacity(app, account.id, id.toLowerCase()));
  },
});

const cancel = route({
  ...{ method: 'DELETE', path: '/v1/clients/capacity-requests/{id}', tag, auth: 'account' },
  summary: 'Takes a pending request back.',
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  params,
  data: wrapper(),
  handle: async (app, { account, keyMode, params: { id }, requestId }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'connect', account.id);
    const given = { accountId: account.id, id: id.toLowerCase(), requestId };
    return wrapped(await cancelCapacity(app, given));
  },
});

const seconds = () => integer().min(0);

const used = () =>
  object({
    used: integer().min(0),
    limit: integer().min(0),
    remaining: integer().min(0),
    window_seconds: seconds(),
    reset_at: nullableTimestamp().description('When the oldest use leaves; null: nothing is used.'),
  });

const bounds = () => object({ min: integer(), max: integer() });

const throttle = object({
  at: timestamp(),
  code: oneOf(...Object.keys(errorCatalogue)),
  reason: text(),
  layer: text(),
  dimension: text(),
  limit: nullable(integer()),
  window_seconds: nullable(seconds()),
  retry_after_seconds: nullable(seconds()),
  operation: text().description('The call that was refused.'),
  request_id: text(),
});

const limits = route({
  ...{ method: 'GET', path: '/v1/clients/limits', tag, auth: 'account' },
  summary: 'What the account may do now, why it was refused lately, and what it could ask for.',
  errors: ['NOT_FOUND'],
  data: object({
    schema_version: oneOf(schemaVersion),
    generated_at: timestamp(),
    account: object({
      billing_plan: oneOf('trial', 'pay_per_success', 'per_message'),
      status: oneOf('active', 'suspended', 'closed'),
    }),
    effective_policy: object({
      tier: oneOf('standard', 'tier-1000', 'tier-5000', 'custom'),
      sustained_per_minute: integer(),
      burst_per_10_seconds: integer(),
      hourly_limit: integer(),
      credential_per_minute: integer(),
      source: oneOf('default', 'reviewed'),
      expires_at: nullableTimestamp(),
    }),
    usage: object({
      ...{ burst: used(), sustained: used(), hourly: used() },
      spend_hour: object({
        ...{ spent: decimal(), cap: nullable(decimal()), reset_at: timestamp() },
      }),
    }),
    allowances: object({
      free_trial: object({
        ...{ granted: integer(), used: integer(), remaining: integer(), paused: flag() },
      }),
      shared_number: object({
        allowance: nullable(integer()).description('Sends in all before a deposit; null: no end.'),
        used: nullable(integer()),
        hourly_limit: integer(),
        paused: flag(),
      }),
      balance: object({ available: decimal(), minimum: decimal() }),
    }),
    eligibility: object({
      can_send: flag(),
      blocked_by: list(text()).description('Codes a send would be refused with now.'),
      can_request_capacity: flag(),
      reasons: list(text()).description('Why none can be made now.'),
      request_bounds: object({
        ...{ per_minute: bounds(), per_10_seconds: bounds(), justification_characters: bounds() },
      }),
      review: object({
        deposited: flag(),
        own_number: flag().description('Sends go out from the account’s own number.'),
        blocked_prefixes: integer(),
        days: integer().description('Over how many days the rates are.'),
        requested: integer(),
        delivery_rate: nullable(decimal()),
        conversion_rate: nullable(decimal()),
      }).description('What a review looks at, as it stands.'),
    }),
    recent_throttles: list(throttle),
    capacity_request: nullable(capacityRequest()).description('The newest one.'),
    safety_controls: object({
      recipient_limits: list(
        object({ scope: text(), dimension: text(), limit: integer(), window_seconds: seconds() }),
      ),
      failed_verifications: object({ attempts: integer(), window_seconds: seconds() }),
      safety_floor: object({
        state: oneOf('clear', 'held'),
        threshold: decimal(),
        days_to_switch: integer(),
        low_days: integer(),
        recent_days: list(
          object({
            date: text(),
            settled: integer(),
            verified: integer(),
            rate: nullable(decimal()),
          }),
        ),
      }),
      fraud_guard: object({
        blocked_prefixes: list(
          object({
            prefix: text().description('Masked.'),
            ...{ country: text(), since: timestamp(), until: timestamp() },
            settled: integer().description('Messages it was judged by.'),
            verified: integer(),
          }),
        ).description('Beginnings of numbers that nothing is sent to for a while.'),
      }),
    }),
  }),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    return limitsDocument(app, account);
  },
});

export const limitRoutes = [limits, create, listRoute, get, cancel];
