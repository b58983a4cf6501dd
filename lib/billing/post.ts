// Posting: what happened becomes rows of the ledger, many at once; then Redis and the account's webhook hear of it.

import { isOutage } from '../infra/outages.ts';
import type { Clock } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { CreditStore, Hold } from './credit-store.ts';
import type { LedgerStore, Posted, PostResult } from './ledger-store.ts';
import { newsAbout } from './news.ts';
import type { Balance, Posting } from './rules.ts';

export type PostDeps = {
  ledger: LedgerStore;
  credit: CreditStore;
  news: NewsStore;
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
const groupBusy = { items: 4, waitMs: 10 };

/** Whether an account has come to the end of its trial with money on it: from now on it pays per success. */
export const endsTrial = (after: Balance): boolean =>
  after.deposited && after.trialUsed >= after.trialGranted;

const settledHolds = (postings: readonly Posting[], accountId: string): Hold[] =>
  postings.flatMap(({ accountId: owner, messageId, holdId, kind, priceMicros, usesTrial }) => {
    const id = holdId ?? messageId;
    return owner === accountId && id !== null && (kind === 'charge' || kind === 'totp')
      ? [{ id, priceMicros: usesTrial ? 0 : (priceMicros ?? 0) }]
      : [];
  });

export const createPoster = (deps: PostDeps): Poster => {
  const { ledger, credit, revocations, clock, log } = deps;

  const changePlan = async (accountId: string, after: Balance): Promise<void> => {
    if (!endsTrial(after)) return;
    const data = { from: 'trial', to: 'pay_per_success', reason: 'trial_used_up' };
    const about = { name: after.seq, at: clock.now() };
    const told = newsAbout(accountId, about, 'billing.plan_changed', data);
    if (!(await ledger.setPlan(accountId, 'trial', 'pay_per_success', [told]))) return;
    await revocations.announce(accountId);
    await tellNews(deps, [told]);
  };

  // The ledger is written: what follows may fail. Holds and balances heal by their lifetimes, news by the next round.
  const follow = async (
    postings: readonly Posting[],
    { changed, told }: PostResult,
  ): Promise<void> => {
    await Promise.all(
      [...changed].map(async ([accountId, { after }]) => {
        await credit.note(accountId, after, { holds: settledHolds(postings, accountId) });
        await changePlan(accountId, after);
      }),
    );
    await tellNews(deps, told);
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
    busy: groupBusy,
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
