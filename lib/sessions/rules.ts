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
/** Sessions one account holds; beyond it the oldest goes. */
export const sessionsMax = 20;

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
  endsAt: number;
};

export type FoundSession = {
  session: Session;
  account: Account;
  expiresAt: number;
  revokedAt: number | null;
};

export type RefreshToken = { generation: number; usedAt: number | null; uses: number };

/** What presenting a refresh token means: a new pair, a new pair within the grace, or a stolen token. */
export const judgeRefresh = (
  token: RefreshToken,
  current: { generation: number },
  now: number,
): 'rotate' | 'grace' | 'reuse' => {
  if (token.usedAt === null) return 'rotate';
  const immediate = token.generation === current.generation - 1;
  return immediate && token.uses === 1 && now - token.usedAt <= graceMs ? 'grace' : 'reuse';
};

/** When the refresh token that is issued at `now` ends: after the idle time, at the latest with its session. */
export const refreshEnd = (session: Pick<Session, 'endsAt'>, now: number): number =>
  Math.min(now + idleLifeMs, session.endsAt);

export const isProven = (session: Session, now: number): boolean =>
  now - session.provenAt <= proofLifeMs;
