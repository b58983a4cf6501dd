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
import type { CreditStore } from './credit-store.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { Posted, PostResult, Written } from './posting-store.ts';
import { hourOf, type Posting } from './rules.ts';

export type PostDeps = {
  ledger: Pick<LedgerStore, 'post'>;
  credit: Pick<CreditStore, 'note'>;
  news: NewsStore;
  announcer: Announcer;
  revocations: Pick<Revocations, 'announce'>;
  clock: Clock;
  log: Log;
};

/** What became of a posting, and the row that stands behind it. */
export type Outcome = Written & { posted: Posted };

export type Poster = {
  /** Resolves after the commit; the same posting twice is one. */
  post(posting: Posting): Promise<Outcome>;
  drain(): Promise<void>;
};

const groupMax = 200;
const groupWaitMs = 1;
const groupBusy = { items: 4, waitMs: 10 };

/** What a batch of postings means for the credit of an account. */
type Credited = {
  /** Ends the holds of what was charged. */
  holds: string[];
  /** What was charged in this batch and not before it, by the hour of what it is for, micro-USD. */
  charged: Map<number, number>;
};

const isCharge = ({ kind }: Posting): boolean => kind === 'charge' || kind === 'totp';

/** By account: the holds that end, and what was charged. */
const creditedBy = (
  postings: readonly Posting[],
  { outcomes, written }: PostResult,
): Map<string, Credited> => {
  const all = new Map<string, Credited>();
  for (const [index, posting] of postings.entries()) {
    const { accountId, messageId, holdId, kind, at } = posting;
    const one = all.get(accountId) ?? { holds: [], charged: new Map<number, number>() };
    all.set(accountId, one);
    const id = holdId ?? messageId;
    if (id !== null && isCharge(posting)) one.holds.push(id);
    const amount = written[index]?.amountMicros ?? 0;
    if (outcomes[index] === 'posted' && amount !== 0 && (isCharge(posting) || kind === 'refund')) {
      one.charged.set(hourOf(at), (one.charged.get(hourOf(at)) ?? 0) - amount);
    }
  }
  return all;
};

export const createPoster = (deps: PostDeps): Poster => {
  const { ledger, credit, revocations, clock, log } = deps;

  // The ledger is written: what follows may fail. Holds and balances heal by their lifetimes, news by the next round.
  const follow = async (postings: readonly Posting[], result: PostResult): Promise<void> => {
    const { balances, trialsEnded, told } = result;
    const credited = creditedBy(postings, result);
    // Also where all was written before: whoever wrote it may have died before this.
    await Promise.all(
      [...balances].map(([accountId, balance]) =>
        credit.note(accountId, balance, credited.get(accountId) ?? {}),
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

  const grouped = createGrouper<Posting, Outcome>({
    maxSize: groupMax,
    maxWaitMs: groupWaitMs,
    busy: groupBusy,
    blamesOne: (error) => !isOutage(error),
    run: async (postings) => {
      const result = await ledger.post(postings, clock.now());
      // Nobody who waits for the commit waits for this.
      behind(follow(postings, result));
      return result.outcomes.map((posted, index) => ({
        posted,
        plan: result.written[index]?.plan ?? null,
        amountMicros: result.written[index]?.amountMicros ?? 0,
      }));
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
