// Sessions: how long they and their tokens live, what a refresh token may still do, and when a proof is fresh.
import type { Account } from '../accounts/rules.ts';
import { day, minute, second } from '../kernel/clock.ts';

/** Life of an access token, ms (design section 4). */
export const accessLifeMs = 15 * minute;
/** A session ends this long after its login, whatever happens in it. */
export const sessionLifeMs = 30 * day;
/** A session that is not refreshed for this long ends. */
export const idleLifeMs = 7 * day;
/** How long the immediate predecessor of a refresh token still counts: an honest retry is not a thief. */
export const graceMs = 10 * second;
/** How long a login or a re-authentication opens sensitive changes. */
export const proofLifeMs = 10 * minute;
/** Sessions one account holds; beyond it those unused for longest go. */
export const sessionsMax = 20;
/** Generations of refresh tokens that are remembered of a session: more than seven days of a token every 15 minutes. */
export const generationsKept = 1_000;
/** Sources that are remembered of an account, the ones used last; and for how long each after its last use. */
export const knownSourcesMax = 20;
export const knownSourceMs = 90 * day;
/** How long a session that is over stays stored; one that a stolen token ended is shown that long. */
export const endedKeptMs = day;
export const reusedKeptMs = 30 * day;
/** Why a session ended whose refresh token came a second time. */
export const reused = 'refresh_token_reused';

/** A session as those who act in it know it. Times in ms. */
export type Session = {
  id: string;
  accountId: string;
  createdAt: number;
  lastUsedAt: number;
  ip: string;
  userAgent: string;
  /** Whether a second factor was given at login. */
  mfa: boolean;
  /** When password or code were last proven. */
  provenAt: number;
  /** When it ends whatever happens in it. */
  endsAt: number;
  /** When it ends unless it is refreshed before; never after `endsAt`. */
  idleEndsAt: number;
};

export type FoundSession = {
  session: Session;
  account: Account;
  expiresAt: number;
  revokedAt: number | null;
};

export type RefreshToken = { generation: number; usedAt: number | null; uses: number };

/** The present generation of a session, and when a grace last gave it two lines of tokens. */
export type Line = { generation: number; forkedAt: number | null };

/** Whether two lines of tokens are still taken for one client: for the grace from the fork on, however often they turn. */
export const isForked = ({ forkedAt }: Line, now: number): boolean =>
  forkedAt !== null && now - forkedAt <= graceMs;

/**
 * What presenting a refresh token means: a new pair, a new pair beside the present one, or a stolen token. After a
 * fork the line that is used first goes on; the other one is a thief's, or makes an honest client log in once more.
 */
export const judgeRefresh = (
  token: RefreshToken,
  line: Line,
  now: number,
): 'rotate' | 'grace' | 'reuse' => {
  const { generation, usedAt, uses } = token;
  if (usedAt === null && generation === line.generation) return 'rotate';
  if (generation !== line.generation - 1) return 'reuse';
  if (usedAt === null) return isForked(line, now) ? 'grace' : 'reuse';
  return uses === 1 && now - usedAt <= graceMs ? 'grace' : 'reuse';
};

/** When the refresh token that is issued at `now` ends: after the idle time, at the latest with its session. */
export const refreshEnd = (session: Pick<Session, 'endsAt'>, now: number): number =>
  Math.min(now + idleLifeMs, session.endsAt);

/** When the access token that is issued at `now` ends. */
export const accessEnd = (session: Pick<Session, 'endsAt'>, now: number): number =>
  Math.min(now + accessLifeMs, session.endsAt);

export const isProven = (session: Session, now: number): boolean =>
  now - session.provenAt <= proofLifeMs;
