// The usage and limits document against a strict schema, in every state an account can be in; a send hears the same.
import test, { type ExecutionContext } from 'ava';
import { limitsDocument } from '../../lib/capacity/document.ts';
import { reviewCapacity } from '../../lib/capacity/request.ts';
import { day, hour } from '../../lib/kernel/clock.ts';
import { tierOf } from '../../lib/limits/tier.ts';
import { maskPrefix, prefixOf } from '../../lib/pumping/rules.ts';
import { suspendAccount } from '../../lib/security/suspend.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { strictCheck } from '../support/strict-schema.ts';

let stack: Stack;
const settings = { TRIAL_VERIFICATIONS: '1', SHARED_NUMBER_HOURLY: '5' };
const wrongIn = strictCheck('/v1/clients/limits');

test.before(async () => {
  stack = await startStack('limits_document', { settings });
});
test.after.always(() => stack?.close());

type Document = {
  account: { status: string; billing_plan: string };
  effective_policy: { tier: string; source: string };
  eligibility: Record<string, unknown> & { blocked_by: string[]; can_send: boolean };
  safety_controls: { fraud_guard: { blocked_prefixes: object[] }; safety_floor: object };
  allowances: Record<string, unknown>;
  usage: Record<string, unknown>;
};

/** The document over HTTP, held against the strict schema and against what a send is told. */
const documentOf = async (t: ExecutionContext, customer: Customer, expected: string[]) => {
  const { data, status, text } = await customer.live.get('/v1/clients/limits');
  t.is(status, 200, text);
  t.is(wrongIn(data), '');
  const document = data as unknown as Document;
  t.deepEqual(document.eligibility.blocked_by, expected);
  t.is(document.eligibility.can_send, expected.length === 0);
  const { error } = await customer.live.send(aNumber());
  t.is(error.code, expected[0]);
  return document;
};

const payer = async (options?: { money?: number }): Promise<Customer> => {
  const customer = await stack.customer(options);
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  return customer;
};

test.serial('trial, and a trial that is used up', async (t) => {
  const customer = await stack.customer({ money: 0 });
  t.like((await documentOf(t, customer, [])).allowances, { free_trial: { granted: 1, used: 0 } });
  const open = await documentOf(t, customer, ['FREE_TRIAL_EXHAUSTED']);
  t.like(open.allowances, { free_trial: { used: 0, held: 1, remaining: 1 } }, 'an open code');
  const next = await stack.customer({ money: 0 });
  const phone = stack.phone();
  await next.live.send(phone.number);
  await next.live.verify(phone.number, await phone.code());
  const document = await documentOf(t, next, ['FREE_TRIAL_EXHAUSTED']);
  t.like(document.allowances, {
    free_trial: { remaining: 0 },
    shared_number: { allowance: 15, used: 0 },
  });
});

test.serial('a trial that is paused for everybody', async (t) => {
  const customer = await stack.customer({ money: 0 });
  await stack.api.prices.setPaused('trial', true, Date.now());
  await stack.api.revocations.announce();
  await eventually(t, async () => {
    const { error } = await customer.live.send(aNumber());
    return error?.code === 'FREE_TRIAL_PAUSED' || undefined;
  });
  await documentOf(t, customer, ['FREE_TRIAL_PAUSED']);
  await stack.api.prices.setPaused('trial', false, Date.now());
  await stack.api.revocations.announce();
});

test.serial('paid, without money, and capped', async (t) => {
  const document = await documentOf(t, await payer(), []);
  t.like(document.eligibility, {
    can_request_capacity: true,
    reasons: [],
    request_bounds: { per_minute: { min: 1, max: 20_000 } },
    review: { deposited: true, own_number: false, blocked_prefixes: 0, days: 30 },
  });
  t.like(document.usage, { spend_hour: { spent: 0, held: 0, cap: null, remaining: null } });
  await documentOf(t, await payer({ money: 0 }), ['DEPOSIT_REQUIRED']);
  await documentOf(t, await payer({ money: 1 }), ['INSUFFICIENT_CREDITS']);
  const capped = await payer();
  await capped.live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly: 0 } });
  t.like((await documentOf(t, capped, ['SPEND_CAP_EXCEEDED'])).usage, { spend_hour: { cap: 0 } });
});

test.serial('what open codes hold is neither spent nor left', async (t) => {
  const customer = await payer({ money: 10 });
  await customer.live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly: 1 } });
  const phone = stack.phone();
  await customer.live.send(phone.number);
  const { data: open } = await customer.live.get('/v1/clients/limits');
  t.is(wrongIn(open), '');
  t.like(open, {
    usage: { spend_hour: { spent: 0, held: 0.05, cap: 1, remaining: 0.95 } },
    allowances: { balance: { available: 10, held: 0.05 }, shared_number: { hourly_used: 1 } },
  });
  await customer.live.verify(phone.number, await phone.code());
  const { data: settled } = await customer.live.get('/v1/clients/limits');
  t.like(settled, {
    usage: { spend_hour: { spent: 0.05, held: 0, cap: 1, remaining: 0.95 } },
    allowances: { balance: { available: 9.95, held: 0 }, shared_number: { hourly_used: 1 } },
  });
});

test.serial('the hour of the shared number used up', async (t) => {
  const customer = await payer();
  for (let sent = 0; sent < 5; sent++) t.is((await customer.live.send(aNumber())).status, 200);
  const document = await documentOf(t, customer, ['CENTRAL_WHATSAPP_LIMIT']);
  t.like(document.allowances, { shared_number: { hourly_limit: 5, hourly_used: 5 } });
});

test.serial(
  'held by the safety floor since a time, which is not any plan per message',
  async (t) => {
    const customer = await payer();
    const { accountId } = customer;
    const judge = (
      date: string,
      lowDays: number,
      plan: 'pay_per_success' | 'per_message',
      at: number,
    ) =>
      stack.api.floor.record(
        {
          ...{ accountId, date, settled: 23, verified: 7, lowDays, plan, at },
          switched: plan === 'per_message',
        },
        [],
      );
    await judge('2026-11-01', 2, 'pay_per_success', 1);
    const clear = { state: 'clear', since: null, low_days: 2 };
    t.like((await documentOf(t, customer, [])).safety_controls, { safety_floor: clear });
    const at = Date.UTC(2026, 10, 3, 0, 20);
    await judge('2026-11-02', 3, 'per_message', at);
    await stack.api.revocations.announce();
    const document = await eventually(t, async () => {
      const found = await documentOf(t, customer, []);
      return found.account.billing_plan === 'per_message' ? found : undefined;
    });
    t.like(document.safety_controls, {
      safety_floor: {
        ...{ state: 'held', since: new Date(at).toISOString(), low_days: 3, days_to_switch: 3 },
        recent_days: [{ date: '2026-11-02', settled: 23, verified: 7, rate: 0.3043 }],
      },
    });
    const chosen = await stack.customer();
    await stack.api.ledger.setPlan(chosen.accountId, 'trial', 'per_message');
    await stack.api.revocations.announce();
    await eventually(t, async () => {
      const { data } = await chosen.live.get('/v1/clients/limits');
      return (data.account as { billing_plan: string }).billing_plan === 'per_message' || undefined;
    });
    const { data } = await chosen.live.get('/v1/clients/limits');
    t.like(data.safety_controls, { safety_floor: { state: 'clear', since: null } });
  },
);

test.serial('the shared number paused for the account', async (t) => {
  const customer = await payer();
  await stack.api.prices.setSharedPaused(customer.accountId, true);
  await stack.api.revocations.announce();
  const document = await documentOf(t, customer, ['CENTRAL_WHATSAPP_PAUSED']);
  t.like(document.allowances, { shared_number: { paused: true } });
});

test.serial('a request pending, and a reviewed tier', async (t) => {
  const customer = await payer();
  const asked = await customer.live.post('/v1/clients/capacity-requests', {
    ...{ requested_sustained_per_minute: 1_000, requested_burst_per_10_seconds: 400 },
    ...{ expected_sustained_per_minute: 600, expected_peak_per_minute: 900 },
    business_justification: 'A launch in three countries next month.',
  });
  t.like((await documentOf(t, customer, [])).eligibility, {
    can_request_capacity: false,
    reasons: ['A request is pending.'],
  });
  const { id } = asked.data.capacity_request as { id: string };
  await reviewCapacity(stack.api, {
    ...{ accountId: customer.accountId, id, requestId: 'ops', note: null, perMinute: 5_000 },
    expiresAt: Date.now() + day,
  });
  t.like(await documentOf(t, customer, []), {
    effective_policy: { tier: 'tier-5000', source: 'reviewed', sustained_per_minute: 5_000 },
    eligibility: { can_request_capacity: true },
  });
});

test.serial('a blocked prefix is named, masked, and only to its account', async (t) => {
  const customer = await payer();
  const phone = '+201001234567';
  const now = Date.now();
  const { accountId } = customer;
  const prefixKey = stack.api.recipients.ofPrefix(accountId, prefixOf(phone));
  const hold = {
    ...{ level: 1, since: now, until: now + hour, settled: 30, verified: 1, spent: now + hour },
    ...{ reason: 'across_accounts' as const, early: false, accounts: 4 },
    together: { settled: 123, verified: 1 },
  };
  const named = { prefix: maskPrefix(prefixOf(phone)), country: 'EG' };
  await stack.api.evidence.publish({ accountId, prefixKey, ...hold, ...named }, now);
  await eventually(t, () => stack.api.guard.blocked(accountId)[0]);
  t.is((await customer.live.send(phone)).error.reason, 'fraud_protection');
  const document = await documentOf(t, customer, []);
  t.like(document.safety_controls.fraud_guard.blocked_prefixes, [
    {
      ...{ ...named, settled: 30, verified: 1, until: new Date(now + hour).toISOString() },
      ...{ reason: 'across_accounts', early: false },
    },
  ]);
  t.false(JSON.stringify(document).includes('123'), 'what others did is not told');
  t.like(document.eligibility, { review: { blocked_prefixes: 1 } });
  t.false(JSON.stringify(document).includes(phone.slice(0, 9)));
  t.deepEqual((await documentOf(t, await payer(), [])).safety_controls.fraud_guard, {
    blocked_prefixes: [],
  });
});

test.serial('a limit that is used up is named with the time of its end', async (t) => {
  const customer = await payer();
  const { accountId, liveKeyId: keyId } = customer;
  const account = await stack.api.accounts.find(accountId);
  if (!account) return t.fail();
  const tier = tierOf(account, Date.now());
  // A hundred sends' worth at once, without their messages.
  const admitted = Array.from({ length: 100 }, () => {
    const phoneKey = stack.api.recipients.ofPhone(aNumber());
    const given = { operation: 'send', accountId, keyId, mode: 'live', phoneKey, tier } as const;
    return stack.api.admission.admit(given);
  });
  await Promise.all(admitted);
  const document = await documentOf(t, customer, ['RATE_LIMIT_EXCEEDED']);
  t.like(document.usage, { burst: { used: 100, remaining: 0, limit: 100 } });
});

test.serial('a suspended account can do nothing and ask for nothing', async (t) => {
  const customer = await payer();
  const { accountId } = customer;
  await suspendAccount(stack.api, { accountId, reason: 'abuse', requestId: 'ops' });
  const refused = await eventually(t, async () => {
    const answer = await customer.live.get('/v1/clients/limits');
    return answer.status === 401 ? answer : undefined;
  });
  t.is(refused.error.code, 'ACCOUNT_SUSPENDED');
  // Its owner cannot read it any more; those who run the service can.
  const account = await stack.api.accounts.find(accountId);
  if (!account) return t.fail();
  const document = await limitsDocument(stack.api, account);
  t.is(wrongIn(document), '');
  t.like(document, {
    account: { status: 'suspended' },
    eligibility: {
      ...{ can_send: false, blocked_by: ['ACCOUNT_SUSPENDED'], can_request_capacity: false },
      reasons: ['The account is not active.'],
    },
  });
});
