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
import type { LedgerStore } from './ledger-store.ts';
import type { Posted, PostResult } from './posting-store.ts';
import type { Posting } from './rules.ts';

export type PostDeps = {
  ledger: Pick<LedgerStore, 'post'>;
  credit: Pick<CreditStore, 'note'>;
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

/** What the postings settle, by account. */
const settledHolds = (postings: readonly Posting[]): Map<string, Hold[]> => {
  const holds = new Map<string, Hold[]>();
  for (const { accountId, messageId, holdId, kind, priceMicros, usesTrial } of postings) {
    const id = holdId ?? messageId;
    if (id === null || (kind !== 'charge' && kind !== 'totp')) continue;
    const hold = { id, priceMicros: usesTrial ? 0 : (priceMicros ?? 0) };
    const others = holds.get(accountId);
    if (others) others.push(hold);
    else holds.set(accountId, [hold]);
  }
  return holds;
};

export const createPoster = (deps: PostDeps): Poster => {
  const { ledger, credit, revocations, clock, log } = deps;

  // The ledger is written: what follows may fail. Holds and balances heal by their lifetimes, news by the next round.
  const follow = async (
    postings: readonly Posting[],
    { balances, trialsEnded, told }: PostResult,
  ): Promise<void> => {
    const holds = settledHolds(postings);
    // Also where all was written before: whoever wrote it may have died before this.
    await Promise.all(
      [...balances].map(([accountId, balance]) =>
        credit.note(accountId, balance, { holds: holds.get(accountId) ?? [] }),
      ),
    );
    for (const accountId of trialsEnded) await revocations.announce(accountId);
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
