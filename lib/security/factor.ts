// The second factor of an account: setting it up, proving it, new recovery codes, and the end of it.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Passwords } from '../accounts/passwords.ts';
import type { Account } from '../accounts/rules.ts';
import type { AccountStore } from '../accounts/store.ts';
import { matchStep, newSecret, otpauthUrl, qrDataUri } from '../kernel/authenticator.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { SealContext, Sealer } from '../kernel/secrets.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { accountEvent } from '../messages/events.ts';
import type { Session } from '../sessions/rules.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { FactorStore } from './factor-store.ts';
import { hashRecoveryCode, newRecoveryCodes, readRecoveryCode } from './recovery-codes.ts';
import type { Throttle } from './throttle.ts';

/** How long a seed waits for the code that confirms it. */
const pendingMs = 10 * minute;
const issuer = 'Tessera';
const saltBytes = 16;

export type MfaDeps = { factors: FactorStore; sealer: Sealer; clock: Clock };

export type FactorDeps = MfaDeps & {
  accounts: AccountStore;
  passwords: Passwords;
  sessions: SessionStore;
  revocations: Pick<Revocations, 'announce'>;
  announcer: Announcer;
  throttle: Throttle;
};

/** Who acts: the account, and the session it does it in. */
export type Actor = { account: Account; session: Session };

/** Exactly one of the two, as the spec has it. */
export type Proof = { password?: string; code?: string };

const seedContext = (accountId: string): SealContext => ({
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
  const secret = sealer.open(sealed, seedContext(accountId));
  const step = matchStep({ secret, code, nowMs: clock.now() });
  return step !== undefined && factors.useStep(accountId, step);
};

// One Argon2id per guess: all codes of a set share a salt. Every code is compared, so time tells nothing.
const isRecoveryCode = async (
  { factors, clock }: MfaDeps,
  accountId: string,
  code: string,
): Promise<boolean> => {
  if (readRecoveryCode(code) === undefined) return false;
  const { salt, codes } = await factors.findRecoveryCodes(accountId);
  if (!salt) return false;
  const hash = await hashRecoveryCode(code, salt);
  const found = codes.filter((candidate) => timingSafeEqual(candidate.hash, hash));
  const [match] = found.filter(({ usedAt }) => usedAt === null);
  return match !== undefined && factors.useRecoveryCode(accountId, match.hash, clock.now());
};

/** Whether `code` is the account's app's or an unused recovery code; being right uses it up. */
export const isFactor = async (deps: MfaDeps, accountId: string, code: string): Promise<boolean> =>
  (await isAppCode(deps, accountId, code)) || (await isRecoveryCode(deps, accountId, code));

/**
 * Takes a password or a code as proof that the owner acts.
 * @throws INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const requireFactor = async (
  deps: FactorDeps,
  account: Account,
  { password, code }: Proof,
): Promise<void> => {
  await deps.throttle.takeFactor(account.id);
  if (password !== undefined) {
    const found = await deps.accounts.findCredentials(account.id);
    const { matches } = await deps.passwords.check(found?.passwordHash, password);
    if (!matches) throw fail('INVALID_CREDENTIALS');
  } else if (!(await isFactor(deps, account.id, code ?? ''))) throw fail('INVALID_CODE');
  await deps.throttle.clearFactor(account.id);
};

/**
 * POST security/mfa/enroll: a seed that counts once a code of it confirmed it; the one before, not confirmed, is void.
 * @throws ALREADY_ENROLLED
 */
export const enrollFactor = async ({ factors, sealer, clock }: MfaDeps, account: Account) => {
  const secret = newSecret();
  const now = clock.now();
  const sealed = sealer.seal(secret, seedContext(account.id));
  if (!(await factors.setPending(account.id, sealed, now + pendingMs))) {
    throw fail('ALREADY_ENROLLED', {}, { message: 'A second factor is set up already.' });
  }
  const url = otpauthUrl({ issuer, label: account.email, secret });
  return { secret, url, qrCode: await qrDataUri(url) };
};

const newCodes = async () => {
  const codes = newRecoveryCodes();
  const salt = randomBytes(saltBytes);
  const hashes: Buffer[] = [];
  for (const code of codes) hashes.push(await hashRecoveryCode(code, salt));
  return { codes, salt, hashes };
};

/**
 * POST security/mfa/confirm: from now on a login asks for a code. Answers the recovery codes, shown this once.
 * @throws TOTP_NOT_ENROLLED (nothing waits), INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const confirmFactor = async (
  deps: FactorDeps,
  { account, session }: Actor,
  code: string,
): Promise<string[]> => {
  const { factors, sealer, clock, throttle, revocations } = deps;
  const now = clock.now();
  const sealed = await factors.findPending(account.id, now);
  if (sealed === undefined) throw nothingSetUp();
  await throttle.takeFactor(account.id);
  const secret = sealer.open(sealed, seedContext(account.id));
  const step = matchStep({ secret, code, nowMs: now });
  if (step === undefined) throw fail('INVALID_CODE');
  await throttle.clearFactor(account.id);
  const { codes, ...kept } = await newCodes();
  if (!(await factors.confirm(account.id, { sealed, step, now, ...kept }))) throw nothingSetUp();
  await deps.sessions.setProven(session.id, now);
  await revocations.announce();
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
  { account, session }: Actor,
  proof: Proof,
  requestId: string,
): Promise<void> => {
  const { factors, sessions, clock, revocations, announcer } = deps;
  if (!(await factors.isEnabled(account.id))) throw nothingSetUp();
  await requireFactor(deps, account, proof);
  const at = clock.now();
  if (!(await factors.disable(account.id))) throw nothingSetUp();
  await sessions.revokeAll(account.id, at, { except: session.id, reason: 'mfa_disabled' });
  await revocations.announce();
  const about = { accountId: account.id, mode: 'live' as const, requestId, at };
  const data = { by: proof.password === undefined ? 'code' : 'password' };
  await announcer.announce(
    accountEvent('security.mfa_disabled', { ...about, subject: newId(), data }),
  );
};

/**
 * POST security/mfa/recovery: new recovery codes; the old ones are void.
 * @throws TOTP_NOT_ENROLLED, INVALID_CREDENTIALS, INVALID_CODE, RATE_LIMIT_EXCEEDED
 */
export const renewRecoveryCodes = async (
  deps: FactorDeps,
  { account }: Actor,
  proof: Proof,
): Promise<string[]> => {
  if (!(await deps.factors.isEnabled(account.id))) throw nothingSetUp();
  await requireFactor(deps, account, proof);
  const { codes, ...kept } = await newCodes();
  await deps.factors.replaceRecoveryCodes(account.id, kept);
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
  await requireFactor(deps, account, proof);
  await deps.sessions.setProven(session.id, deps.clock.now());
  await deps.revocations.announce();
};
