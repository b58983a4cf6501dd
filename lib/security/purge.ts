// Deleting what is over of accounts' security: ended sessions, expired tokens, unfinished logins, unused sources, the
// log past its 180 days.
import type { SecurityLogStore } from '../accounts/log-store.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { SourceStore } from '../sessions/source-store.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { ChallengeStore } from './challenge-store.ts';

/** Rows per statement, and statements per round: a backlog is worked off over rounds and locks little at a time. */
export const purgeBatch = 500;
const batchesPerRound = 20;

export type PurgeDeps = {
  sessions: Pick<SessionStore, 'purgeEnded' | 'purgeTokens'>;
  challenges: Pick<ChallengeStore, 'purgeChallenges'>;
  sources: Pick<SourceStore, 'purgeSources'>;
  securityLog: Pick<SecurityLogStore, 'purgeLog'>;
  clock: Clock;
  log: Log;
};

const inBatches = async (
  purge: (now: number, most: number) => Promise<number>,
  now: number,
): Promise<void> => {
  for (let batch = 0; batch < batchesPerRound; batch++) {
    if ((await purge(now, purgeBatch)) < purgeBatch) return;
  }
};

/** One round. What throttles count needs none: every key of theirs in Redis has its time to live. */
export const purgeSecurity = async ({
  sessions,
  challenges,
  sources,
  securityLog,
  clock,
}: PurgeDeps): Promise<void> => {
  const now = clock.now();
  await inBatches(sessions.purgeEnded, now);
  await inBatches(sessions.purgeTokens, now);
  await inBatches(challenges.purgeChallenges, now);
  await inBatches(securityLog.purgeLog, now);
  await inBatches(sources.purgeSources, now);
};

/** The round of every minute. Any number of processes may run it: a row is deleted once. */
export const createSecurityPurge = (deps: PurgeDeps): Chore =>
  repeat(() => purgeSecurity(deps), minute, deps.log);
