// A forgotten password: a code to the account's own phone, sent by Tessera through Tessera.
import { requireGoodPassword } from '../accounts/password-policy.ts';
import { platformAccountId } from '../accounts/platform.ts';
import { emailKey } from '../accounts/rules.ts';
import type { Credentials } from '../accounts/store.ts';
import { fail, ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import { sha256Hex } from '../kernel/secrets.ts';
import type { Principal } from '../keys/rules.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import { standardTier } from '../limits/rules.ts';
import type { SendDeps } from '../otp/perform.ts';
import { sendOtp } from '../otp/send.ts';
import { type VerifyDeps, verifyOtp } from '../otp/verify.ts';
import { type PasswordDeps, setPassword } from '../security/password.ts';

export type RecoveryDeps = PasswordDeps & {
  reads: ReadLimiter;
  sends: SendDeps;
  verifies: VerifyDeps;
  log: Log;
};

/** Nobody's number: what is tried for an address without an account, so that it takes the same way. */
const nobody = '+10000000000';

const nameOf = (email: string): string => sha256Hex(emailKey(email));

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

/** Sends the code. Why it could not be sent is for the log alone: the caller hears the same either way. */
const sendCode = async (
  deps: RecoveryDeps,
  account: Credentials['account'],
  requestId: string,
): Promise<void> => {
  try {
    await sendOtp(deps.sends, {
      ...{
        principal: await platform(deps, account.email),
        tier: standardTier,
        origin: 'send',
        requestId,
      },
      ...{ phone: account.phone, code: undefined, once: undefined, onWindow: () => undefined },
    });
  } catch (error) {
    const reason = error instanceof ServiceError ? error.code : describeError(error);
    deps.log.warn({ account_id: account.id, reason }, 'no code for a forgotten password');
  }
};

export type Recovery = {
  /**
   * POST /v1/clients/password/forgot: the same answer, as fast, whoever has the address; the code is sent behind it.
   * @throws RATE_LIMIT_EXCEEDED, by source and by address, known or not
   */
  forgot(given: { email: string; source: string; requestId: string }): Promise<void>;
  /**
   * POST /v1/clients/password/reset: a new password for the right code; all sessions end, a second factor stays.
   * The company is no part of what the password is held against: a refusal would tell whose address it is.
   * @throws INVALID_CODE for whatever is wrong with code or address, VALIDATION_ERROR, RATE_LIMIT_EXCEEDED,
   * SERVICE_UNAVAILABLE (the code is as good as before)
   */
  reset(given: { email: string; code: string; password: string; source: string }): Promise<void>;
  /** Waits for codes that are being sent. */
  drain(): Promise<void>;
};

const codeOf = (error: unknown): string => (error instanceof ServiceError ? error.code : '');

// Which of them it was would tell whether somebody has this address.
const guessed = new Set(['OTP_NOT_FOUND', 'INVALID_CODE', 'TOO_MANY_ATTEMPTS']);

export const createRecovery = (deps: RecoveryDeps): Recovery => {
  const sending = new Set<Promise<void>>();

  const behind = (work: Promise<void>): void => {
    const tracked = work.finally(() => sending.delete(tracked));
    sending.add(tracked);
  };

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

  return {
    forgot: async ({ email, source, requestId }) => {
      await takeRead(deps.reads, 'forgot_source', source);
      await takeRead(deps.reads, 'forgot_email', nameOf(email));
      const account = await activeAccount(deps, email);
      if (account) behind(sendCode(deps, account, requestId));
    },
    reset: async ({ email, code, password, source }) => {
      await takeRead(deps.reads, 'reset_source', source);
      await takeRead(deps.reads, 'reset_email', nameOf(email));
      await requireGoodPassword('new_password', password, { email, company: null });
      const account = await activeAccount(deps, email);
      // Before the code, which is used up by being right: after it nothing may be refused for want of room.
      const hash = await deps.passwords.hash(password);
      await verify(email, account?.phone ?? nobody, code);
      if (!account) throw fail('INVALID_CODE');
      await setPassword(deps, { accountId: account.id, hash, except: undefined });
      await deps.throttle.forget({ email: emailKey(email), source });
    },
    drain: async () => {
      await Promise.all(sending);
    },
  };
};
