// The second factor of an account: setting it up, proving it, new recovery codes, and the end of it.

import { timingSafeEqual } from 'node:crypto';
import type { Act } from '../accounts/acts.ts';
import type { Passwords } from '../accounts/passwords.ts';
import type { Account } from '../accounts/rules.ts';
import type { AccountStore } from '../accounts/store.ts';
import type { EventWire } from '../jobs.ts';
import { matchStep, newSecret, otpauthUrl, qrDataUri } from '../kernel/authenticator.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { SealContext, Sealer } from '../kernel/secrets.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Session } from '../sessions/rules.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { FactorStore } from './factor-store.ts';
import {
  type RecoveryCodes,
  readRecoveryCode,
  recoveryCodesLow,
  saltedHashOf,
} from './recovery-codes.ts';
import { type Guess, guessSubject, type Throttle } from './throttle.ts';

/** How long a seed waits for the code that confirms it. */
const pendingMs = 10 * minute;
const issuer = 'Tessera';

export type MfaDeps = {
  factors: FactorStore;
  passwords: Passwords;
  recoveryCodes: RecoveryCodes;
  sealer: Sealer;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
};

export type FactorDeps = MfaDeps & {
  accounts: AccountStore;
  sessions: SessionStore;
  revocations: Pick<Revocations, 'announce'>;
  throttle: Throttle;
};

/** Who acts: the account, and the session it does it in. */
export type Actor = { account: Account; session: Session };

/** The same where the act stands in the security log. */
export type LoggedActor = Actor & { act: Act };

/** Exactly one of the two, as the spec has it. */
export type Proof = { password?: string; code?: string };

/** What the seed of an account's second factor is sealed for. */
export const factorContext = (accountId: string): SealContext => ({
  purpose: 'account-mfa',
  record: accountId,
});

const isAppCode = async (
  { factors, sealer, clock }: MfaDeps,
  accountId: string,
  code: string,
): Promise<boolean> => {
  const sealed = await factors.findSeed(accountId);
  if (sealed === undefined) return false;
  const secret = sealer.open(sealed, factorContext(accountId));
  const step = matchStep({ secret, code, nowMs: clock.now() });
  return step !== undefined && factors.useStep(accountId, step);
};

/** What using a recovery code is worth telling, when so many are `left`. */
const newsOfLeft =
  (accountId: string, at: number) =>
  (left: number): EventWire[] => {
    if (left >= recoveryCodesLow) return [];
    const about = { accountId, mode: 'live' as const, requestId: newId(), at, subject: newId() };
    const data = { recovery_codes_remaining: left };
    return [accountEvent('security.recovery_codes_low', { ...about, data })];
  };

// Every code is compared, so time tells nothing.
const isRecoveryCode = async (
  deps: MfaDeps,
  accountId: string,
  typed: string,
): Promise<boolean> => {
  const { factors, passwords, recoveryCodes, clock } = deps;
  const code = readRecoveryCode(typed);
  if (code === undefined) return false;
  const { salt, codes } = await factors.findRecoveryCodes(accountId);
  const hash = salt
    ? await saltedHashOf(passwords, code, salt)
    : recoveryCodes.hashOf(accountId, code);
  const found = codes.filter((candidate) => timingSafeEqual(candidate.hash, hash));
  const [match] = found.filter(({ usedAt }) => usedAt === null);
  if (!match) return false;
  const now = clock.now();
  const use = { hash: match.hash, now, newsOfLeft: newsOfLeft(accountId, now) };
  const told = await factors.useRecoveryCode(accountId, use);
  await tellNews(deps, told ?? []);
  return told !== undefined;
};

/** Whether `code` is the account's app's or an unused recovery code; being right uses it up. */
export const isFactor = async (deps: MfaDeps, accountId: string, code: string): Promise<boolean> =>
  (await isAppCode(deps, accountId, code)) || (await isRecoveryCode(deps, accountId, code));

/** A recovery code and a code of the app are told apart by their form, and counted apart. */
export const guessOf = (code: string): Guess =>
  readRecoveryCode(code) === undefined ? 'code' : 'recovery';

/**
 * Takes a password or a code as proof that the owner acts; failures count for this session alone.
 * @throws INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const requireFactor = (
  deps: FactorDeps,
  { account, session }: Actor,
  { password, code = '' }: Proof,
): Promise<void> =>
  password === undefined
    ? deps.throttle.guessing(guessOf(code), guessSubject.ofSession(session.id), async () => {
        if (!(await isFactor(deps, account.id, code))) throw fail('INVALID_CODE');
      })
    : deps.throttle.guessing('password', guessSubject.ofSession(session.id), async () => {
        const found = await deps.accounts.findCredentials(account.id);
        const { matches } = await deps.passwords.check(found?.passwordHash, password);
        if (!matches) throw fail('INVALID_CREDENTIALS');
      });

/**
 * POST security/mfa/enroll: a seed that counts once a code of it confirmed it; the one before, not confirmed, is void.
 * @throws ALREADY_ENROLLED
 */
export const enrollFactor = async (
  { factors, sealer, clock }: Pick<MfaDeps, 'factors' | 'sealer' | 'clock'>,
  account: Account,
) => {
  const secret = newSecret();
  const now = clock.now();
  const sealed = sealer.seal(secret, factorContext(account.id));
  if (!(await factors.setPending(account.id, sealed, now + pendingMs))) {
    throw fail('ALREADY_ENROLLED', {}, { message: 'A second factor is set up already.' });
  }
  const url = otpauthUrl({ issuer, label: account.email, secret });
  return { secret, url, qrCode: await qrDataUri(url) };
};

/**
 * POST security/mfa/confirm: from now on a login asks for a code. Answers the recovery codes, shown this once.
 * @throws TOTP_NOT_ENROLLED (nothing waits), INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const confirmFactor = async (
  deps: FactorDeps,
  { account, session, act }: LoggedActor,
  code: string,
): Promise<string[]> => {
  const { factors, recoveryCodes, sealer, clock, throttle, revocations } = deps;
  const now = clock.now();
  const sealed = await factors.findPending(account.id, now);
  if (sealed === undefined) throw nothingSetUp();
  // Before the code is looked at: nothing that takes its time stands between the code's 30 seconds and the answer.
  const { codes, hashes } = recoveryCodes.newSet(account.id);
  const secret = sealer.open(sealed, factorContext(account.id));
  const step = matchStep({ secret, code, nowMs: now });
  await throttle.guessing('code', guessSubject.ofSession(session.id), async () => {
    if (step === undefined) throw fail('INVALID_CODE');
  });
  const confirmed = { sealed, step: step ?? 0, now, act, hashes };
  if (!(await factors.confirm(account.id, confirmed))) throw nothingSetUp();
  await deps.sessions.setProven(session.id, now);
  await revocations.announce(account.id);
  return codes;
};

const nothingSetUp = () =>
  fail(
    'TOTP_NOT_ENROLLED',
    {},
    { message: 'No second factor is set up, or the time for it ran out.' },
  );

/**
 * POST security/mfa/disable. With a password alone this is the weakest door, so every other session ends and the
 * account's webhook is told (reference 06 section 5).
 * @throws TOTP_NOT_ENROLLED, INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const disableFactor = async (
  deps: FactorDeps,
  { account, session, act }: LoggedActor,
  proof: Proof,
  requestId: string,
): Promise<void> => {
  const { factors, clock, revocations } = deps;
  if (!(await factors.isEnabled(account.id))) throw nothingSetUp();
  await requireFactor(deps, { account, session }, proof);
  const at = clock.now();
  const ending = { now: at, except: session.id, reason: 'mfa_disabled', act };
  const about = { accountId: account.id, mode: 'live' as const, requestId, at, subject: newId() };
  const data = { by: proof.password === undefined ? 'code' : 'password' };
  const told = [accountEvent('security.mfa_disabled', { ...about, data })];
  if (!(await factors.disable(account.id, ending, told))) throw nothingSetUp();
  await revocations.announce(account.id);
  await tellNews(deps, told);
};

/**
 * POST security/mfa/recovery: new recovery codes; the old ones are void.
 * @throws TOTP_NOT_ENROLLED, INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const renewRecoveryCodes = async (
  deps: FactorDeps,
  { account, session, act }: LoggedActor,
  proof: Proof,
): Promise<string[]> => {
  if (!(await deps.factors.isEnabled(account.id))) throw nothingSetUp();
  const { codes, hashes } = deps.recoveryCodes.newSet(account.id);
  await requireFactor(deps, { account, session }, proof);
  if (!(await deps.factors.replaceRecoveryCodes(account.id, { hashes, act }))) throw nothingSetUp();
  return codes;
};

/**
 * POST security/reauth: opens sensitive changes in this session for ten minutes.
 * @throws INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const reauthenticate = async (
  deps: FactorDeps,
  { account, session }: Actor,
  proof: Proof,
): Promise<void> => {
  await requireFactor(deps, { account, session }, proof);
  // Nobody is told: who remembers the session without the proof reads it again before refusing (api/caller.ts).
  await deps.sessions.setProven(session.id, deps.clock.now());
};
