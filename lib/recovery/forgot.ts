// A forgotten password: a code to the account's own phone, sent by Tessera through Tessera.
import { randomInt } from 'node:crypto';
import { requireGoodPassword } from '../accounts/password-policy.ts';
import { platformAccountId } from '../accounts/platform.ts';
import { emailKey } from '../accounts/rules.ts';
import type { Credentials } from '../accounts/store.ts';
import type { Turnstile } from '../channels/turnstile.ts';
import { fail, ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import { sha256Hex } from '../kernel/secrets.ts';
import { networkOf } from '../kernel/source.ts';
import type { Principal } from '../keys/rules.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import { standardTier } from '../limits/rules.ts';
import type { SendDeps } from '../otp/perform.ts';
import { sendOtp } from '../otp/send.ts';
import { type VerifyDeps, verifyOtp } from '../otp/verify.ts';
import { isRefusal } from '../security/counters.ts';
import { type PasswordDeps, setPassword } from '../security/password.ts';
import type { SourceStore } from '../sessions/source-store.ts';
import { humanCheck } from '../signup/human.ts';
import type { ResetCodes } from './code-store.ts';
import type { ResetGuesses } from './guesses.ts';

export type RecoveryDeps = PasswordDeps & {
  reads: ReadLimiter;
  sends: SendDeps;
  verifies: VerifyDeps;
  sources: Pick<SourceStore, 'isTrusted' | 'remember'>;
  turnstile: Turnstile | undefined;
  resetCodes: ResetCodes;
  resetGuesses: ResetGuesses;
  log: Log;
};

const nameOf = (email: string): string => sha256Hex(emailKey(email));

/** Eight digits, uniform, from the operating system's generator: nobody copies it from one device to another in haste. */
const newResetCode = (): string => String(randomInt(0, 100_000_000)).padStart(8, '0');

/**
 * The account in whose name codes to owners go out; it is no customer and never charged. Each address has a
 * credential of its own: what strangers try with theirs takes nothing from anybody else's.
 */
const platform = async ({ accounts }: RecoveryDeps, email: string): Promise<Principal> => {
  const account = await accounts.find(platformAccountId);
  if (!account) throw new Error('the account of the platform is missing: run the migrations');
  return { accountId: account.id, keyId: nameOf(email).slice(0, 32), mode: 'live', account };
};

const activeAccount = async (
  { accounts }: RecoveryDeps,
  email: string,
): Promise<Credentials['account'] | undefined> => {
  const found = await accounts.findByEmail(email);
  return found?.account.status === 'active' ? found.account : undefined;
};

type Asked = {
  account: Credentials['account'];
  /** The account knows where the call comes from. */
  trusted: boolean;
  requestId: string;
};

/** Sends the code. Why it could not be sent is for the log alone: the caller hears the same either way. */
const sendCode = async (deps: RecoveryDeps, asked: Asked): Promise<void> => {
  const { account, trusted, requestId } = asked;
  try {
    // Half of what the platform's account may send: the other half is left for owners at sources they used before.
    if (!trusted) await takeRead(deps.reads, 'forgot_strangers', 'all');
    const code = newResetCode();
    await deps.resetCodes.keep(nameOf(account.email), code);
    await sendOtp(deps.sends, {
      principal: await platform(deps, account.email),
      tier: standardTier,
      origin: 'send',
      requestId,
      phone: account.phone,
      code,
      once: undefined,
      onWindow: () => undefined,
    });
  } catch (error) {
    const reason = error instanceof ServiceError ? error.code : describeError(error);
    deps.log.warn({ account_id: account.id, reason }, 'no code for a forgotten password');
  }
};

/** Who calls: `turnstileToken` is looked at only past the limit of sources that the account does not know. */
export type RecoveryVisitor = { source: string; ip: string; turnstileToken: string | undefined };

export type Recovery = {
  /**
   * POST /v1/clients/password/forgot: the same answer, as fast, whoever has the address; the code is sent behind it.
   * @throws RATE_LIMIT_EXCEEDED, by source and by address, known or not; TURNSTILE_REQUIRED and VALIDATION_ERROR
   * (about turnstile_token) in its place where the bot check is configured
   */
  forgot(given: { email: string; visitor: RecoveryVisitor; requestId: string }): Promise<void>;
  /**
   * POST /v1/clients/password/reset: a new password for the right code; all sessions end, a second factor stays.
   * The company is no part of what the password is held against: a refusal would tell whose address it is.
   * @throws INVALID_CODE for whatever is wrong with code or address, VALIDATION_ERROR, RATE_LIMIT_EXCEEDED,
   * TURNSTILE_REQUIRED, SERVICE_UNAVAILABLE (the code is as good as before)
   */
  reset(given: {
    email: string;
    code: string;
    password: string;
    visitor: RecoveryVisitor;
  }): Promise<void>;
  /** Waits for codes that are being sent. */
  drain(): Promise<void>;
};

const codeOf = (error: unknown): string => (error instanceof ServiceError ? error.code : '');

// Which of them it was would tell whether somebody has this address.
const guessed = new Set(['OTP_NOT_FOUND', 'INVALID_CODE', 'TOO_MANY_ATTEMPTS']);

/** Counts a request for a code: trusted sources each for themselves, all others together. */
const takeForgot = async (
  { reads, turnstile }: RecoveryDeps,
  given: { name: string; trusted: boolean; visitor: RecoveryVisitor },
): Promise<void> => {
  const { name, trusted, visitor } = given;
  const { source } = visitor;
  if (trusted) return takeRead(reads, 'forgot_email', `${name}:${source}`);
  await takeRead(reads, 'forgot_source', source);
  await takeRead(reads, 'forgot_network', networkOf(source));
  const ofAll = async (subject: string): Promise<void> => {
    await takeRead(reads, 'forgot_email', subject);
    await takeRead(reads, 'forgot_day', subject);
  };
  const human = humanCheck(turnstile, visitor);
  await ofAll(name).catch(async (error: unknown) => {
    if (human === undefined || !isRefusal(error)) throw error;
    await human();
    await ofAll(`human:${name}`);
  });
};

export const createRecovery = (deps: RecoveryDeps): Recovery => {
  const sending = new Set<Promise<void>>();
  const { reads, resetCodes, resetGuesses, sources, clock } = deps;

  const behind = (work: Promise<void>): void => {
    const tracked = work.finally(() => sending.delete(tracked));
    sending.add(tracked);
  };

  const isTrusted = (email: string, source: string): Promise<boolean> =>
    sources.isTrusted(emailKey(email), source, clock.now());

  /** Uses the code up: the message itself says whether it is still valid. */
  const verify = async (email: string, phone: string, code: string): Promise<void> => {
    try {
      const principal = await platform(deps, email);
      await verifyOtp(deps.verifies, { principal, tier: standardTier, phone, code });
    } catch (error) {
      if (guessed.has(codeOf(error))) throw fail('INVALID_CODE');
      // The code was right; what it costs us is not the owner's concern.
      if (codeOf(error) !== 'BILLING_ERROR') throw error;
    }
  };

  /** The account and the hash of its new password, once the code is right and used up. */
  const prove = async (given: { email: string; code: string; password: string }) => {
    const { email, code, password } = given;
    const [account, sent] = await Promise.all([
      activeAccount(deps, email),
      resetCodes.wasSent(nameOf(email), code),
    ]);
    if (!account || !sent) throw fail('INVALID_CODE');
    // Before the code is used up: after it nothing may be refused for want of room.
    const hash = await deps.passwords.hash(password);
    await verify(email, account.phone, code);
    return { account, hash };
  };

  return {
    forgot: async ({ email, visitor, requestId }) => {
      const name = nameOf(email);
      const trusted = await isTrusted(email, visitor.source);
      await takeForgot(deps, { name, trusted, visitor });
      const account = await activeAccount(deps, email);
      if (account) behind(sendCode(deps, { account, trusted, requestId }));
    },
    reset: async ({ email, code, password, visitor }) => {
      const { source } = visitor;
      const name = nameOf(email);
      const trusted = await isTrusted(email, source);
      if (!trusted) {
        await takeRead(reads, 'reset_source', source);
        await takeRead(reads, 'reset_network', networkOf(source));
      }
      await requireGoodPassword('new_password', password, { email, company: null });
      const human = humanCheck(deps.turnstile, visitor);
      const proven: { account: Credentials['account']; hash: string }[] = [];
      await resetGuesses.guessing({ name, source, trusted }, human, async () => {
        proven.push(await prove({ email, code, password }));
      });
      for (const { account, hash } of proven) {
        const act = {
          by: 'reset_code',
          credentialId: null,
          ip: visitor.ip,
          requestId: null,
        } as const;
        await setPassword(deps, { accountId: account.id, hash, except: undefined, act });
        await Promise.allSettled([
          resetCodes.drop(name, code),
          deps.throttle.forget({ email: emailKey(email), source }),
          sources.remember(account.id, source, clock.now()),
        ]);
      }
    },
    drain: async () => {
      await Promise.all(sending);
    },
  };
};
