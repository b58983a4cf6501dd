// The safety floor: accounts whose codes hardly anybody enters pay per message until that changes (spec section 8).
import type { Broker } from '../infra/queue/broker.ts';
import { againQueue, waitQueue } from '../infra/queue/topology.ts';
import { billingCharge } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Plan } from '../messages/rules.ts';
import type { FloorDay, FloorStore } from './floor-store.ts';
import { newsAbout } from './news.ts';

/** Spec section 8: under 55 % on three days in a row. */
export const floorRate = 0.55;
export const floorDays = 3;
/** When the day before is judged: every code of it has ended by then. */
const afterMidnightMs = 20 * minute;
/** Days further back than this are not made up for. */
const roundsBack = 7;

export type FloorVerdict = { lowDays: number; plan: Plan };

/**
 * What a day of an account comes to. A day with less than `minimum` settled messages says nothing: it neither adds to
 * the low days nor ends them. Three in a row lead to per_message, one good day leads back.
 */
export const judgeDay = (
  before: FloorVerdict,
  { settled, verified }: Pick<FloorDay, 'settled' | 'verified'>,
  minimum: number,
): FloorVerdict => {
  if (settled < minimum) return before;
  const good = verified / settled >= floorRate;
  if (good) return { lowDays: 0, plan: 'pay_per_success' };
  const lowDays = before.lowDays + 1;
  return { lowDays, plan: lowDays >= floorDays ? 'per_message' : before.plan };
};

export type FloorDeps = {
  floor: FloorStore;
  news: NewsStore;
  announcer: Announcer;
  revocations: Pick<Revocations, 'announce'>;
  clock: Clock;
  log: Log;
  floorMinimumDaily: number;
};

export type JudgeDeps = FloorDeps & { broker: Pick<Broker, 'depth'> };

const judgeAccount = async (deps: FloorDeps, date: string, today: FloorDay): Promise<boolean> => {
  const { accountId, settled, verified, lowDays, plan } = today;
  const after = judgeDay({ lowDays, plan }, today, deps.floorMinimumDaily);
  const switched = after.plan !== plan;
  // One row per account and day decides: a day that was judged is not judged again.
  const data = { from: plan, to: after.plan, reason: 'safety_floor', date, settled, verified };
  const about = { name: date, at: deps.clock.now() };
  const told = switched ? [newsAbout(accountId, about, 'billing.plan_changed', data)] : [];
  const judged = { accountId, date, settled, verified, switched, at: about.at, ...after };
  const first = await deps.floor.record(judged, told);
  if (!first || !switched) return false;
  await deps.revocations.announce(today.accountId);
  await tellNews(deps, told);
  return true;
};

const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * The beginnings of the days to judge, oldest first: yesterday, and what came before it since the last round, for a
 * worker that was away over midnight skips no day.
 */
export const daysToJudge = (now: number, lastRound: string | undefined): number[] => {
  const today = Math.floor(now / day) * day;
  if (now - today < afterMidnightMs) return [];
  const yesterday = today - day;
  const after = lastRound === undefined ? yesterday : Date.parse(lastRound) + day;
  const first = Math.max(after, today - roundsBack * day);
  const days = Math.max((today - first) / day, 0);
  return Array.from({ length: days }, (_, index) => first + index * day);
};

/** Judges the UTC days that are over and not judged yet; answers how many plans were switched. */
export const judgePastDays = async (deps: FloorDeps): Promise<number> => {
  const { floor, clock } = deps;
  let switched = 0;
  for (const from of daysToJudge(clock.now(), await floor.lastRound())) {
    const date = dateOf(from);
    for (const entry of await floor.unjudged(date, from, from + day)) {
      if (await judgeAccount(deps, date, entry)) switched++;
    }
    await floor.endRound(date, clock.now());
  }
  return switched;
};

/** Every queue in which a verification may wait to be written down. */
const verificationQueues = [
  billingCharge.name,
  againQueue(billingCharge.name),
  ...billingCharge.retrySeconds.map((seconds) => waitQueue(billingCharge.name, seconds)),
];

/** Whether verifications may still be on their way to their rows: their day would look worse than it was. */
const areUnheard = async ({ broker, news, clock }: JudgeDeps): Promise<boolean> => {
  const left = await news.leftBefore(clock.now() - minute, 1);
  if (left.length > 0) return true;
  const depths = await Promise.all(verificationQueues.map(broker.depth));
  return depths.some(({ ready }) => ready > 0);
};

/**
 * What the clock calls: no day is judged before all of its verifications are known, so that an outage of ours does not
 * cost an account its plan.
 */
export const judgeWhenHeard = async (deps: JudgeDeps): Promise<number> => {
  const { floor, clock, log } = deps;
  if (daysToJudge(clock.now(), await floor.lastRound()).length === 0) return 0;
  if (!(await areUnheard(deps))) return judgePastDays(deps);
  log.info({}, 'verifications wait to be recorded: no day is judged yet');
  return 0;
};
