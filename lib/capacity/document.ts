// The usage and limits document (spec section 2): what an account may do now, why it was refused, what it could ask for.
import type { Account } from '../accounts/rules.ts';
import type { ExposureCaps, Holding } from '../billing/credit-store.ts';
import { floorDays, floorRate } from '../billing/floor.ts';
import type { FloorStore } from '../billing/floor-store.ts';
import type { LedgerStore } from '../billing/ledger-store.ts';
import type { PriceStore } from '../billing/price-store.ts';
import type { Quotes } from '../billing/quote.ts';
import { hourOf, minimumBalanceMicros, sharedAllowance } from '../billing/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour } from '../kernel/clock.ts';
import { type ErrorCode, fail, ServiceError } from '../kernel/errors.ts';
import { toUsd } from '../kernel/money.ts';
import type { AdmissionLimits } from '../limits/admission.ts';
import { admissionTable } from '../limits/table.ts';
import { tierOf } from '../limits/tier.ts';
import type { Blocked, PumpingGuard } from '../pumping/refuse.ts';
import { periodOf, rate } from '../reports/rules.ts';
import type { TotalsStore } from '../reports/totals-store.ts';
import type { ResolveSender } from '../sender/resolve.ts';
import { blockersOf, requestBounds, requestReasons, reviewFacts } from './eligibility.ts';
import { capacityView } from './request.ts';
import { schemaVersion } from './rules.ts';
import type { CapacityStore } from './store.ts';
import type { Throttles } from './throttles.ts';

export type DocumentDeps = {
  admission: AdmissionLimits;
  ledger: LedgerStore;
  prices: PriceStore;
  floor: FloorStore;
  capacity: CapacityStore;
  throttles: Throttles;
  guard: Pick<PumpingGuard, 'blocked'>;
  totals: TotalsStore;
  resolveSender: ResolveSender;
  quotes: Pick<Quotes, 'totp' | 'holding'>;
  clock: Clock;
  exposure: ExposureCaps;
  config: { sharedHourly: number };
};

const recentFloorDays = 7;
const reviewDays = 30;
const failedVerifications = { attempts: 5, window_seconds: 900 };

const usageOf = async ({ admission, clock }: DocumentDeps, account: Account) => {
  const now = clock.now();
  const tier = tierOf(account, now);
  const all = await admission.usage({ accountId: account.id, mode: 'live', tier });
  const view = (name: string) => {
    const one = all.find((allowance) => allowance.name === name);
    const [limit, used] = [one?.limit ?? 0, one?.used ?? 0];
    return {
      ...{ used, limit, remaining: Math.max(limit - used, 0) },
      window_seconds: (one?.windowMs ?? 0) / 1000,
      reset_at: one && used > 0 ? new Date(now + one.resetMs).toISOString() : null,
    };
  };
  return { burst: view('burst'), sustained: view('sustained'), hourly: view('hourly') };
};

const policyOf = (account: Account, now: number) => {
  const tier = tierOf(account, now);
  const reviewed = tier.name !== 'standard';
  const { expiresAt } = account.tier;
  return {
    ...{ tier: tier.name, sustained_per_minute: tier.sustained },
    ...{ burst_per_10_seconds: tier.burst, hourly_limit: tier.hourly },
    credential_per_minute: admissionTable.find(({ name }) => name === 'credential')?.limit ?? 0,
    source: reviewed ? ('reviewed' as const) : ('default' as const),
    expires_at: reviewed && expiresAt !== null ? new Date(expiresAt).toISOString() : null,
  };
};

const recipientRows = () =>
  admissionTable
    .filter(({ dimension }) => dimension === 'recipient' || dimension === 'recipient_global')
    .map(({ scope, limit, windowMs, dimension }) => ({
      ...{ scope, dimension, limit, window_seconds: windowMs / 1000 },
    }));

type Money = NonNullable<Awaited<ReturnType<LedgerStore['balance']>>>;

const spendHour = (account: Account, money: Money, holding: Holding, now: number) => {
  const cap = account.spendCapHourlyMicros;
  const spent = money.spentHour === hourOf(now) ? money.spentMicros : 0;
  return {
    ...{ spent: toUsd(spent), held: toUsd(holding.micros) },
    cap: cap === null ? null : toUsd(cap),
    remaining: cap === null ? null : toUsd(Math.max(cap - spent - holding.micros, 0)),
    reset_at: new Date((hourOf(now) + 1) * hour).toISOString(),
  };
};

const trialOf = ({ trialGranted: granted, trialUsed: used }: Money, holding: Holding) => {
  const remaining = Math.max(granted - used, 0);
  return { granted, used, held: Math.min(holding.free, remaining), remaining };
};

/** What an account may have unverified on the shared number; after a deposit there is no such end. */
const sharedOf = ({ deposited, shared: grant }: Money, { shared, sharedHour }: Holding) => {
  const verified = shared?.verified ?? 0;
  return {
    allowance: deposited ? null : sharedAllowance(grant, verified),
    used: deposited ? null : (shared?.unverified ?? 0),
    unverified_at_first: grant.unverified,
    per_verified: grant.perVerified,
    hourly_used: sharedHour,
  };
};

/** What unverified messages of the last 24 hours cost the platform, and the most they may. */
const exposureOf = (
  { exposure: caps }: Pick<DocumentDeps, 'exposure'>,
  { deposited }: Money,
  { exposure, exposureResetAt }: Holding,
) => {
  const cost = exposure?.costMicros ?? 0;
  const charged = exposure?.chargedMicros ?? 0;
  const limit = deposited
    ? Math.max(caps.paidMicros, caps.timesCharged * charged)
    : caps.trialMicros;
  return {
    used: toUsd(cost),
    limit: toUsd(limit),
    remaining: toUsd(Math.max(limit - cost, 0)),
    window_seconds: day / 1000,
    reset_at: exposureResetAt === null ? null : new Date(exposureResetAt).toISOString(),
  };
};

const allowancesOf = async (
  deps: DocumentDeps,
  account: Account,
  money: Money,
  holding: Holding,
) => {
  const paused = await deps.prices.paused();
  return {
    free_trial: { ...trialOf(money, holding), paused: paused.has('trial') },
    shared_number: {
      ...sharedOf(money, holding),
      hourly_limit: deps.config.sharedHourly,
      paused: account.sharedPaused || paused.has('shared_number'),
    },
    unpaid_exposure: exposureOf(deps, money, holding),
    balance: {
      available: toUsd(money.micros),
      held: toUsd(holding.micros),
      minimum: toUsd(minimumBalanceMicros),
    },
  };
};

const floorOf = async ({ floor }: DocumentDeps, account: Account) => {
  const [days, { since, lowDays }] = await Promise.all([
    floor.recent(account.id, recentFloorDays),
    floor.standing(account.id),
  ]);
  const held = account.billingPlan === 'per_message' && since !== null;
  return {
    state: held ? ('held' as const) : ('clear' as const),
    since: held ? new Date(since).toISOString() : null,
    ...{ threshold: floorRate, days_to_switch: floorDays, low_days: lowDays },
    recent_days: days.map(({ date, settled, verified }) => ({
      ...{ date, settled, verified, rate: rate(verified, settled) },
    })),
  };
};

/** What the account's messages came to lately, and the prefixes it may not send to. */
const recordOf = async ({ totals, guard, clock }: DocumentDeps, account: Account) => {
  const { from, to } = periodOf(reviewDays, clock.now());
  const asked = { from, to, spanMs: day, by: undefined, modes: ['live'] as const };
  return { tallies: await totals.totals(account.id, asked), held: guard.blocked(account.id) };
};

const heldView = (held: Blocked) => {
  const { prefix, country, reason, early, since, until, settled, verified } = held;
  return {
    ...{ prefix, country, reason, early, settled, verified },
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
  };
};

/** The word of the gate before a send about trial, balance and cap; it looks and holds nothing. */
const moneyBlocker = async (
  { quotes }: DocumentDeps,
  account: Account,
): Promise<ErrorCode | undefined> => {
  try {
    await quotes.totp({ account, mode: 'live', holdId: undefined });
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
};

const gather = async (deps: DocumentDeps, account: Account, money: Money) => {
  const holding = await deps.quotes.holding(account, money);
  const [usage, allowances, floor, record, [newest], throttles, sender, blocker] =
    await Promise.all([
      usageOf(deps, account),
      allowancesOf(deps, account, money, holding),
      floorOf(deps, account),
      recordOf(deps, account),
      deps.capacity.list(account.id, { before: undefined, limit: 1 }),
      deps.throttles.recent(account.id).catch(() => []),
      deps.resolveSender(account.id),
      moneyBlocker(deps, account),
    ]);
  return { usage, holding, allowances, floor, record, newest, throttles, sender, blocker };
};

type Gathered = Awaited<ReturnType<typeof gather>>;

const eligibilityOf = (account: Account, { deposited }: Money, found: Gathered) => {
  const { usage, allowances, newest, record, sender, blocker } = found;
  const { allowance, used, paused: sharedPaused, ...hourly } = allowances.shared_number;
  const blockedBy = blockersOf({
    ...{ status: account.status, money: blocker, sharedPaused },
    shared: sender?.shared === true,
    sharedLeft: allowance === null ? null : Math.max(allowance - (used ?? 0), 0),
    sharedHourLeft: Math.max(hourly.hourly_limit - hourly.hourly_used, 0),
    exposed: allowances.unpaid_exposure.remaining === 0,
    limited: Object.values(usage).some(({ remaining }) => remaining === 0),
  });
  const reasons = requestReasons(account, newest?.status === 'pending');
  return {
    ...{ can_send: blockedBy.length === 0, blocked_by: blockedBy },
    ...{ can_request_capacity: reasons.length === 0, reasons, request_bounds: requestBounds },
    review: reviewFacts({
      ...{ days: reviewDays, deposited, tallies: record.tallies },
      ownNumber: sender?.shared === false,
      blockedPrefixes: record.held.length,
    }),
  };
};

/** GET /v1/clients/limits. @throws NOT_FOUND */
export const limitsDocument = async (deps: DocumentDeps, account: Account) => {
  const now = deps.clock.now();
  const money = await deps.ledger.balance(account.id);
  if (!money) throw fail('NOT_FOUND');
  const found = await gather(deps, account, money);
  return {
    schema_version: schemaVersion as typeof schemaVersion,
    generated_at: new Date(now).toISOString(),
    account: { billing_plan: account.billingPlan, status: account.status },
    effective_policy: policyOf(account, now),
    usage: { ...found.usage, spend_hour: spendHour(account, money, found.holding, now) },
    allowances: found.allowances,
    eligibility: eligibilityOf(account, money, found),
    recent_throttles: found.throttles,
    capacity_request: found.newest ? capacityView(found.newest) : null,
    safety_controls: {
      recipient_limits: recipientRows(),
      failed_verifications: failedVerifications,
      safety_floor: found.floor,
      fraud_guard: { blocked_prefixes: found.record.held.map(heldView) },
    },
  };
};
