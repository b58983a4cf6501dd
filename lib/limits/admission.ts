// Admission of send, deliver and verify: every limit of the call at once, all or nothing, on exact sliding windows.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { admissionLua } from './admission-lua.ts';
import { type Allowance, type Refusal, refusalOf } from './answers.ts';
import { type AdmissionOperation, createPlanner, type Plan, type Subject } from './plan.ts';
import { standardTier, type Tier } from './rules.ts';

export type AdmissionRequest = Omit<Subject, 'sourceKey'> & {
  operation: 'send' | 'deliver' | 'verify';
  tier: Tier;
};

/** What `giveBack` needs; plain data, may travel in a job. */
export type Receipt = { key: string; at: number };

export type Admission =
  | { admitted: true; window: Allowance[]; receipt: Receipt | null }
  | { admitted: false; refusal: Refusal; window: Allowance[] };

export type AdmissionLimits = {
  /**
   * Takes one place in every limit of the call, or none in any and the refusal with the longest wait. `window` holds
   * the account's three allowances after a send or deliver, nothing after a verify. Throws RedisUnavailable.
   */
  admit(request: AdmissionRequest): Promise<Admission>;
  /**
   * The same for a playground send, which has no account: the playground's own recipient rows, the recipient's rows
   * across all accounts, and the source address (`sourceKey`: an IPv4 address or an IPv6 /64). Throws RedisUnavailable.
   */
  admitPlayground(request: {
    phoneKey: string;
    sourceKey: string;
    /** The sandbox counts apart from what real recipients get; live by default. */
    mode?: Subject['mode'];
  }): Promise<Admission>;
  /**
   * For a send that delivered nothing: removes its account-and-phone entries, so that the same user may try again.
   * What protects the recipient and the account stays taken. Call once per receipt. Throws RedisUnavailable.
   */
  giveBack(receipt: Receipt | null): Promise<void>;
  /** The account's three allowances as they stand, taking nothing. Throws RedisUnavailable. */
  usage(account: { accountId: string; mode: Subject['mode']; tier: Tier }): Promise<Allowance[]>;
};

export type AdmissionDeps = {
  redis: RedisClient;
  /** In front of every key; no braces, they belong to the Cluster tags. */
  prefix: string;
  /** A test's clock in ms; by default the time of the Redis server decides, never this process's. */
  nowMs?: () => number;
};

type Outcome = { plan: Plan; refused: number; waitMs: number; now: number; window: Allowance[] };

/** Runs one plan: 'take' if nothing refuses, or only 'look'. */
type Run = (plan: Plan, purpose: 'take' | 'look') => Promise<Outcome>;

const createRun = ({ redis, nowMs }: AdmissionDeps): Run => {
  type Reply = [refused: number, waitMs: number, now: number, ...report: number[]];
  const script = defineScript<Reply>(redis, { name: 'tesseraAdmit', lua: admissionLua });
  return async (plan, purpose) => {
    const now = nowMs === undefined ? '' : nowMs();
    const take = purpose === 'take' ? 1 : 0;
    const reply = await script(plan.keys, [now, take, plan.reported.length, ...plan.args]);
    const [refused, waitMs, serverNow, ...report] = reply;
    const window = plan.reported.map(({ name, limit, windowMs }, index) => ({
      name,
      limit,
      windowMs,
      used: report[2 * index] ?? 0,
      resetMs: report[2 * index + 1] ?? 0,
    }));
    return { plan, refused, waitMs, now: serverNow, window };
  };
};

const refusal = (outcomes: readonly Outcome[]): Admission => {
  const [worst] = outcomes.toSorted((a, b) => b.waitMs - a.waitMs);
  const row = worst?.plan.rows[worst.refused - 1];
  if (worst === undefined || row === undefined) throw new Error('a refusal without a row');
  return {
    admitted: false,
    refusal: refusalOf(row, worst.waitMs, worst.now),
    window: outcomes.flatMap((outcome) => outcome.window),
  };
};

const acceptance = (outcomes: readonly Outcome[]): Admission => {
  // Only the account-and-phone entry, always of the first key, is ever given back by a caller.
  const [first] = outcomes;
  const key = first?.plan.rows[0]?.group === 'accountPhone' ? first.plan.keys[0] : undefined;
  return {
    admitted: true,
    window: outcomes.flatMap((outcome) => outcome.window),
    receipt: first === undefined || key === undefined ? null : { key, at: first.now },
  };
};

type GiveBack = (receipt: Receipt | null) => Promise<void>;

/**
 * In a Cluster a script may touch one slot only, so the groups run one after the other: account and phone, phone,
 * source, account. A refusal takes back what the earlier groups took (by value, newest first); the later ones are looked at
 * for the longest wait. Nothing is ever admitted beyond a limit; a losing call may be felt by others for a moment.
 */
const admitInGroups = async (
  run: Run,
  plans: readonly Plan[],
  giveBack: GiveBack,
): Promise<Admission> => {
  const taken: Outcome[] = [];
  // An entry that cannot be taken back only makes its limit stricter: the first error or refusal stands.
  const undo = () =>
    Promise.allSettled(
      taken.splice(0).flatMap(({ plan, now: at }) => plan.keys.map((key) => giveBack({ key, at }))),
    );
  try {
    for (const [index, plan] of plans.entries()) {
      const outcome = await run(plan, 'take');
      if (outcome.refused > 0) {
        await undo();
        const later = plans.slice(index + 1).map((other) => run(other, 'look'));
        return refusal([outcome, ...(await Promise.all(later))]);
      }
      taken.push(outcome);
    }
    return acceptance(taken);
  } catch (error) {
    await undo();
    throw error;
  }
};

/** The admission of one process (see `AdmissionLimits`); in a Cluster it works slot by slot. */
export const createAdmission = (deps: AdmissionDeps): AdmissionLimits => {
  const { redis, prefix } = deps;
  const plan = createPlanner(prefix, redis.isCluster);
  const run = createRun(deps);

  const giveBack: GiveBack = async (receipt) => {
    if (receipt !== null) await redis.lrem(receipt.key, 1, receipt.at);
  };

  const admitAs = async (operation: AdmissionOperation, tier: Tier, subject: Subject) => {
    const plans = plan(operation, tier, subject);
    const [only, ...others] = plans;
    if (only === undefined) throw new Error(`no limits for ${operation}`);
    if (others.length > 0) return admitInGroups(run, plans, giveBack);
    const outcome = await run(only, 'take');
    return outcome.refused > 0 ? refusal([outcome]) : acceptance([outcome]);
  };

  const usage: AdmissionLimits['usage'] = async ({ accountId, mode, tier }) => {
    const subject = { accountId, mode, keyId: '', phoneKey: '' };
    const outcomes = await Promise.all(
      plan('usage', tier, subject).map((part) => run(part, 'look')),
    );
    return outcomes.flatMap((outcome) => outcome.window);
  };

  return {
    admit: (request) => admitAs(request.operation, request.tier, request),
    admitPlayground: ({ mode = 'live', ...request }) =>
      admitAs('playground', standardTier, { ...request, accountId: '', keyId: '', mode }),
    giveBack,
    usage,
  };
};
