// Signing up: what a visitor must pass before an account is made, and the one look at its first keys.

import type { Act } from '../accounts/acts.ts';
import { requireGoodPassword } from '../accounts/password-policy.ts';
import type { Account } from '../accounts/rules.ts';
import type { Turnstile } from '../channels/turnstile.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { phoneFacts } from '../kernel/phone.ts';
import { networkOf } from '../kernel/source.ts';
import { keyHash } from '../keys/rules.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import type { SourceStore } from '../sessions/source-store.ts';
import {
  type CreateDeps,
  createAccount,
  type FirstKeys,
  type Registration,
  signupKeysContext,
} from './create.ts';
import { requireHuman } from './human.ts';

export type SignUpDeps = CreateDeps & {
  reads: ReadLimiter;
  turnstile: Turnstile | undefined;
  sources: Pick<SourceStore, 'remember'>;
  /** The guard against pumping counts accounts of one source together. */
  evidence: { rememberSources(accountId: string, sources: readonly string[]): Promise<void> };
  clock: Clock;
};

/** `source` is an opaque name of where the call comes from. */
export type SignUp = Registration & {
  turnstileToken: string | undefined;
  ip: string;
  source: string;
};

/**
 * POST /v1/clients/register.
 * @throws VALIDATION_ERROR, RATE_LIMIT_EXCEEDED, EMAIL_TAKEN, SERVICE_UNAVAILABLE
 */
export const signUp = async (deps: SignUpDeps, command: SignUp): Promise<Account> => {
  if (!phoneFacts(command.phone).possible) {
    throw invalid({ field: 'phone', issue: 'is not a number of any country' });
  }
  await requireGoodPassword('password', command.password, command);
  await takeRead(deps.reads, 'register', command.source);
  await takeRead(deps.reads, 'register_network', networkOf(command.source));
  await requireHuman(deps, command);
  const { turnstileToken: _, ip: __, source, ...registration } = command;
  const { account } = await createAccount(deps, registration, { reveal: true });
  // The account exists either way; the first login remembers its source, too.
  await deps.sources.remember(account.id, source, deps.clock.now()).catch(() => undefined);
  await deps.evidence
    .rememberSources(account.id, [source, networkOf(source)])
    .catch(() => undefined);
  return account;
};

/**
 * POST /v1/clients/signup-secret: the first keys, once. Those that are shown to a key end with it.
 * @throws NOT_FOUND when they were shown before; KEY_MANAGEMENT_DISABLED, INVALID_API_KEY (the key that acts ended
 * meanwhile)
 */
export const revealFirstKeys = async (
  { signups, sealer, clock }: Pick<SignUpDeps, 'signups' | 'sealer' | 'clock'>,
  accountId: string,
  act: Act,
): Promise<FirstKeys> => {
  const opened = (sealed: string): FirstKeys =>
    JSON.parse(sealer.open(sealed, signupKeysContext(accountId))) as FirstKeys;
  const hashesOf = (sealed: string): Buffer[] => Object.values(opened(sealed)).map(keyHash);
  const sealed = await signups.takeKeys(accountId, { act, now: clock.now(), hashesOf });
  if (sealed === undefined) throw fail('NOT_FOUND');
  return opened(sealed);
};
