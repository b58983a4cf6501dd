// TOTP: what an enrollment is and what a call does to it (spec section 3), and how many guesses there are.
import { day, minute } from '../kernel/clock.ts';
import type { Mode } from '../messages/rules.ts';

/** Spec section 8: five failures, then a block of 15 minutes; counted apart from one-time codes. */
export const failedAttempts = 5;
export const blockMs = 15 * minute;

/** An enrollment that nobody confirms for this long is none. */
export const unconfirmedLifeMs = day;

/** The public secret of the sandbox (spec section 5.4): 160 bits that guard nothing. */
export const demoSecret = 'TESSERADEMOSECRETTESSERADEMOSECR';

export type EnrollmentState = 'unconfirmed' | 'confirmed' | 'disabled';

export type Enrollment = {
  id: string;
  state: EnrollmentState;
  /** Sealed; null once disabled. */
  seed: string | null;
  createdAt: number;
};

/** Whose enrollment it is. */
export type Subject = { accountId: string; mode: Mode; phone: string };

/** Whether codes of the enrollment count at `now` (ms). */
export const isActive = (enrollment: Enrollment | undefined, now: number): boolean =>
  enrollment !== undefined &&
  (enrollment.state === 'confirmed' ||
    (enrollment.state === 'unconfirmed' && now - enrollment.createdAt < unconfirmedLifeMs));

/** What POST /v1/totp/enroll comes to: refused, or a fresh secret, in the place of a confirmed one or not. */
export const judgeEnroll = (
  present: Enrollment | undefined,
  replace: boolean,
): 'refuse' | 'fresh' | 'replace' => {
  if (present?.state !== 'confirmed') return 'fresh';
  return replace ? 'replace' : 'refuse';
};
