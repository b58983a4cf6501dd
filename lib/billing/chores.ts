// What the billing worker does on the clock: the books are proven every hour, the safety floor judges every day.
import { type Chore, repeat } from '../kernel/chore.ts';
import { hour, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type JudgeDeps, judgeWhenHeard } from './floor.ts';
import type { Poster } from './post.ts';
import { reconcile } from './reconcile.ts';
import type { ReconcileStore } from './reconcile-store.ts';
import { chargeForTotp } from './rules.ts';

type Deps = JudgeDeps & {
  books: ReconcileStore;
  poster: Poster;
  log: Log;
  /** Hears of every proof of the books: how many differences it found, and when. */
  onReconciled?: (mismatches: number, at: number) => void;
};

const forgottenMost = 1_000;
/** Younger ones may still be on their way. */
const forgottenAfterMs = 10 * minute;

/** A verification whose event was lost between its commit and the broker is charged from the log that it left. */
export const chargeForgotten = async ({
  books,
  poster,
  clock,
}: Pick<Deps, 'books' | 'poster' | 'clock'>): Promise<number> => {
  const forgotten = await books.forgottenTotp(clock.now() - forgottenAfterMs, forgottenMost);
  // The log does not tell the plan: it is free where the account is on trial and has a free one left.
  await Promise.all(
    forgotten.map((entry) => poster.post(chargeForTotp({ ...entry, plan: 'trial' }))),
  );
  return forgotten.length;
};

/** Logs whether the books agree; a difference is an error with its checks, for people to look into. */
export const createBookkeeper = (deps: Deps): Chore =>
  repeat(
    async () => {
      const charged = await chargeForgotten(deps);
      if (charged > 0) deps.log.warn({ charged }, 'verifications charged late');
      const { accounts, differences } = await reconcile(deps);
      deps.onReconciled?.(differences.length, deps.clock.now());
      const fields = { accounts, mismatches: differences.length };
      if (differences.length === 0) return deps.log.info(fields, 'reconciled');
      const checks = [...new Set(differences.map(({ check }) => check))];
      deps.log.error({ ...fields, checks }, 'the books do not agree');
    },
    hour,
    deps.log,
  );

/** Looks every ten minutes whether there is a day to judge; one that was judged for all is not looked at again. */
export const createFloorJudge = (deps: Deps): Chore =>
  repeat(
    async () => {
      const switched = await judgeWhenHeard(deps);
      if (switched > 0) deps.log.warn({ switched }, 'safety floor switched plans');
    },
    10 * minute,
    deps.log,
  );
