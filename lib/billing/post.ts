// Posting: what happened becomes rows of the ledger, many at once; then Redis and the account's webhook hear of it.

import { isOutage } from '../infra/outages.ts';
import type { Clock } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { derivedId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { toUsd } from '../kernel/money.ts';
import { describeError } from '../kernel/redact.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { type AccountEventType, accountEvent } from '../messages/events.ts';
import type { CreditStore, Hold } from './credit-store.ts';
import type { LedgerStore, Posted, PostResult } from './ledger-store.ts';
import { type Balance, lowBalanceMicros, type Posting } from './rules.ts';

export type PostDeps = {
  ledger: LedgerStore;
  credit: CreditStore;
  announcer: Announcer;
  revocations: Pick<Revocations, 'announce'>;
  clock: Clock;
  log: Log;
};

export type Poster = {
  /** Resolves after the commit; the same posting twice is one. */
  post(posting: Posting): Promise<Posted>;
  drain(): Promise<void>;
};

const groupMax = 200;
const groupWaitMs = 1;

type News = { type: AccountEventType; data: Record<string, unknown> };

/** What a change of balance is worth telling; each crossing once. */
export const newsOf = (before: Balance, after: Balance): News[] => {
  const fell = before.micros >= lowBalanceMicros && after.micros < lowBalanceMicros;
  const { trialGranted: granted, trialUsed: used } = after;
  const ended = before.trialUsed < granted && used >= granted;
  return [
    ...(fell
      ? [{ type: 'billing.low_balance' as const, data: { balance: toUsd(after.micros) } }]
      : []),
    ...(ended ? [{ type: 'billing.trial_exhausted' as const, data: { granted, used } }] : []),
  ];
};

/** Whether an account has come to the end of its trial with money on it: from now on it pays per success. */
export const endsTrial = (after: Balance): boolean =>
  after.deposited && after.trialUsed >= after.trialGranted;

const settledHolds = (postings: readonly Posting[], accountId: string): Hold[] =>
  postings.flatMap(({ accountId: owner, messageId, kind, priceMicros, usesTrial }) =>
    owner === accountId && messageId !== null && kind === 'charge'
      ? [{ id: messageId, priceMicros: usesTrial ? 0 : (priceMicros ?? 0) }]
      : [],
  );

export const createPoster = (deps: PostDeps): Poster => {
  const { ledger, credit, announcer, revocations, clock, log } = deps;

  const tell = async (accountId: string, seq: number, news: News[]): Promise<void> => {
    for (const { type, data } of news) {
      const subject = `${accountId} ${seq}`;
      const requestId = derivedId(subject, type);
      const about = { accountId, mode: 'live' as const, at: clock.now(), requestId, subject };
      await announcer.announce(accountEvent(type, { ...about, data }));
    }
  };

  const changePlan = async (accountId: string, after: Balance): Promise<void> => {
    if (!endsTrial(after)) return;
    if (!(await ledger.setPlan(accountId, 'trial', 'pay_per_success'))) return;
    await revocations.announce();
    const data = { from: 'trial', to: 'pay_per_success', reason: 'trial_used_up' };
    await tell(accountId, after.seq, [{ type: 'billing.plan_changed', data }]);
  };

  // The ledger is written: what follows may fail, and then holds and balances heal by their lifetimes.
  const follow = async (postings: readonly Posting[], { changed }: PostResult): Promise<void> => {
    await Promise.all(
      [...changed].map(async ([accountId, { before, after }]) => {
        await credit.note(accountId, after, { holds: settledHolds(postings, accountId) });
        await tell(accountId, after.seq, newsOf(before, after));
        await changePlan(accountId, after);
      }),
    );
  };

  const following = new Set<Promise<void>>();
  const behind = (work: Promise<void>): void => {
    const tracked = work
      .catch((error: unknown) =>
        log.warn({ reason: describeError(error) }, 'posted, not told everywhere'),
      )
      .finally(() => following.delete(tracked));
    following.add(tracked);
  };

  const grouped = createGrouper<Posting, Posted>({
    maxSize: groupMax,
    maxWaitMs: groupWaitMs,
    blamesOne: (error) => !isOutage(error),
    run: async (postings) => {
      const result = await ledger.post(postings, clock.now());
      // Nobody who waits for the commit waits for this.
      behind(follow(postings, result));
      return result.outcomes;
    },
  });

  return {
    post: (posting) => grouped.add(posting),
    drain: async () => {
      await grouped.drain();
      await Promise.all(following);
    },
  };
};
