// The usage and limits document (spec sections 2, 4 and 8).

import { limitsDocument } from '../../lib/capacity/document.ts';
import { schemaVersion } from '../../lib/capacity/rules.ts';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import {
  decimal,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  text,
} from '../../lib/kernel/schema.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { holdReasons } from '../../lib/pumping/rules.ts';
import { mode, nullableTimestamp, timestamp, yesNo } from '../fields.ts';
import { route } from '../route.ts';
import { capacityRequest } from './capacity.ts';

const tag = 'Limits and capacity';

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
  mode: nullable(mode()).description('Of the key that was used; null: a session.'),
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
        spent: decimal(),
        held: decimal().description('What codes that are open may still cost.'),
        cap: nullable(decimal()),
        remaining: nullable(decimal()).description('What may still be spent; null: no cap.'),
        reset_at: timestamp(),
      }),
    }),
    allowances: object({
      free_trial: object({
        ...{ granted: integer(), used: integer() },
        held: integer().description('Open codes, each of which may use one of those that remain.'),
        remaining: integer().description('Not used yet: the next successes are free.'),
        paused: flag(),
      }),
      shared_number: object({
        allowance: nullable(integer()).description(
          'Messages that may be unverified before the first deposit; null: no end.',
        ),
        used: nullable(integer()).description(
          'Messages on the shared number that nobody verified, open ones among them.',
        ),
        unverified_at_first: integer().description('What the allowance began with.'),
        per_verified: integer().description('What each verified message adds to it.'),
        hourly_limit: integer(),
        hourly_used: integer().description('Sends in this UTC hour.'),
        paused: flag(),
      }),
      unpaid_exposure: object({
        used: decimal().description(
          'What messages of the last 24 hours on the shared number that nobody verified cost the service, USD.',
        ),
        limit: decimal().description('The most of it.'),
        remaining: decimal(),
        window_seconds: seconds(),
        reset_at: nullableTimestamp().description('When the oldest of it leaves; null: nothing.'),
      }),
      balance: object({
        available: decimal(),
        held: decimal().description(
          'What codes that are open may still cost of it, after the free verifications that remain.',
        ),
        minimum: decimal(),
      }),
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
        since: nullableTimestamp().description('Since when it is held at the plan per message.'),
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
            prefix: nullable(text()).description('Masked; null: the whole country.'),
            country: text(),
            reason: oneOf(...holdReasons).description(
              'unverified: hardly any of your codes there were entered. across_accounts: so it is with yours, and with those of other accounts there. undelivered: codes that you check yourself mostly have no receipt. concentrated: most codes that you check yourself go there.',
            ),
            early: yesNo().description('Codes that are open still were counted; it ends sooner.'),
            ...{ since: timestamp(), until: timestamp() },
            settled: integer().description('Your messages it was judged by.'),
            verified: integer(),
          }),
        ).description('Beginnings of numbers, and countries, that nothing is sent to for a while.'),
      }),
    }),
  }),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    return limitsDocument(app, account);
  },
});

export const limitRoutes = [limits];
