// The playground: a send and a verify without an account, in the sandbox unless operators want real messages.
import { playgroundAccountId } from '../accounts/platform.ts';
import type { AccountStore } from '../accounts/store.ts';
import type { Turnstile } from '../channels/turnstile.ts';
import type { Config } from '../kernel/config.ts';
import { fail } from '../kernel/errors.ts';
import { fromMessageId } from '../kernel/ids.ts';
import type { Principal } from '../keys/rules.ts';
import type { AdmissionLimits } from '../limits/admission.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import { standardTier } from '../limits/rules.ts';
import type { SendAnswer, SendDeps } from '../otp/perform.ts';
import { sandboxCode } from '../otp/rules.ts';
import { sendOtp } from '../otp/send.ts';
import { type VerifyDeps, verifyOtp } from '../otp/verify.ts';
import { requireHuman } from '../signup/human.ts';
import { type Preview, playgroundCooldownSeconds, previewOf } from './rules.ts';

export type PlaygroundDeps = {
  config: Pick<Config, 'playground'>;
  accounts: Pick<AccountStore, 'find'>;
  reads: ReadLimiter;
  sends: SendDeps;
  verifies: VerifyDeps;
  turnstile: Turnstile | undefined;
};

/** `source` is an opaque name of where the call comes from. */
export type Visit = {
  phone: string;
  ip: string;
  source: string;
  turnstileToken: string | undefined;
  requestId: string;
};

export type PlaygroundAnswer = SendAnswer & {
  delivery: 'sandbox' | 'live';
  /** What the phone would show; null when a real phone shows it. */
  preview: Preview | null;
};

const playground = async ({ config, accounts }: PlaygroundDeps): Promise<Principal> => {
  const account =
    config.playground === 'off' ? undefined : await accounts.find(playgroundAccountId);
  if (account?.status !== 'active') {
    throw fail('NOT_FOUND', {}, { message: 'There is no playground here.' });
  }
  const mode = config.playground === 'live' ? 'live' : 'test';
  return { accountId: account.id, keyId: account.id, mode, account };
};

/** The limits of a playground send in the place of an account's (spec section 8). */
const admissionFor = (
  { sends, reads }: PlaygroundDeps,
  { mode }: Principal,
  sourceKey: string,
): AdmissionLimits => ({
  ...sends.admission,
  admit: async ({ phoneKey }) => {
    const admission = await sends.admission.admitPlayground({ phoneKey, sourceKey, mode });
    if (admission.admitted && mode === 'live') await takeRead(reads, 'playground_live', 'all');
    return admission;
  },
});

const previewFor = async (
  { sends }: PlaygroundDeps,
  { accountId, mode }: Principal,
  sent: { phone: string; messageId: string },
): Promise<Preview | null> => {
  const id = fromMessageId(sent.messageId);
  if (mode === 'live' || id === undefined) return null;
  const recipient = sends.recipients.ofRecipient(accountId, mode, sent.phone);
  const live = await sends.live.find({ recipient, id });
  return previewOf(live?.facts.channel ?? 'whatsapp', sandboxCode);
};

/**
 * POST /v1/playground/send. Every call counts against its source, also one that fails.
 * @throws NOT_FOUND when switched off, VALIDATION_ERROR about turnstile_token, and what a send can give
 */
export const sendFromPlayground = async (
  deps: PlaygroundDeps,
  visit: Visit,
): Promise<PlaygroundAnswer> => {
  const principal = await playground(deps);
  await takeRead(deps.reads, 'source_send', visit.source);
  await requireHuman(deps, visit);
  const { phone, requestId } = visit;
  const sends = { ...deps.sends, admission: admissionFor(deps, principal, visit.source) };
  const { data } = await sendOtp(sends, {
    ...{ principal, tier: standardTier, origin: 'send', phone, code: undefined, requestId },
    ...{ once: undefined, onWindow: () => undefined },
  });
  return {
    ...data,
    cooldown_seconds: playgroundCooldownSeconds,
    delivery: principal.mode === 'live' ? 'live' : 'sandbox',
    preview: await previewFor(deps, principal, { phone, messageId: data.message_id }),
  };
};

/**
 * POST /v1/playground/verify.
 * @throws NOT_FOUND when switched off, and what a verify can give
 */
export const verifyFromPlayground = async (
  deps: PlaygroundDeps,
  visit: Pick<Visit, 'phone' | 'source'> & { code: string },
): Promise<void> => {
  const principal = await playground(deps);
  await takeRead(deps.reads, 'playground_verify', visit.source);
  const { phone, code } = visit;
  await verifyOtp(deps.verifies, { principal, tier: standardTier, phone, code });
};
