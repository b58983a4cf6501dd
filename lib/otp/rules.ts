// One-time codes: how they are made and kept, which channels are tried, and what an outcome means for the caller.
import { randomInt } from 'node:crypto';
import type { RefusalClass } from '../channels/channel.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import { hmacHex, type NamedKey } from '../kernel/secrets.ts';
import {
  type ChannelName,
  codeLifeSeconds,
  type FailureReason,
  type Mode,
} from '../messages/rules.ts';

/** Spec section 8: five failures, then a block of 15 minutes. */
export const failedAttempts = 5;
export const blockMs = 15 * 60 * 1000;

/** Spec section 5.4: the code of the sandbox. */
export const sandboxCode = '123456';

/** Spec section 8: one resend per account and recipient in 30 seconds. */
export const cooldownSeconds = 30;

/** A code that nobody waits for may come this long after it was asked for: after that it is of no help. */
export const lateMs = (codeLifeSeconds - 60) * 1000;

/** Six digits, uniform, from the operating system's generator (NIST SP 800-63B section 5.1.3.2). */
export const newCode = (mode: Mode): string =>
  mode === 'test' ? sandboxCode : String(randomInt(0, 1_000_000)).padStart(6, '0');

/**
 * The HMACs a code is compared by, one per pepper, newest first. They cover the recipient (account, mode and
 * phone); the message is bound by the record the HMAC is kept in.
 */
export const codeMacs = (
  peppers: readonly NamedKey[],
  recipientKey: string,
  code: string,
): { id: string; mac: string }[] =>
  peppers.map(({ id, key }) => ({ id, mac: hmacHex(key, `${recipientKey}\n${code}`) }));

/** The channels to try, in order. A recipient known to be out of WhatsApp's reach gets the fallback first. */
export const planChannels = (facts: {
  linked: boolean;
  reachable: boolean | undefined;
  tried: readonly ChannelName[];
}): ChannelName[] => {
  const all: ChannelName[] =
    facts.reachable === false ? ['telegram', 'whatsapp'] : ['whatsapp', 'telegram'];
  return all.filter(
    (channel) => !facts.tried.includes(channel) && (channel === 'whatsapp' || facts.linked),
  );
};

/** Whether a leg has been begun and not failed: the message is out over it, or may soon be. */
export const isUnderway = (leg: string | undefined): boolean =>
  leg !== undefined && leg !== 'failed';

/** What WhatsApp's failure goes on from, where Telegram was tried before it. */
export const triedBefore = (live: {
  telegram: string | undefined;
  lostTelegram: FailureReason | null;
}): { tried: ChannelName[]; reason: FailureReason | null } =>
  live.telegram === 'failed'
    ? { tried: ['telegram'], reason: live.lostTelegram }
    : { tried: [], reason: null };

/** What became of a send, as the worker tells the API process that waits for it. */
export type Outcome =
  | { kind: 'accepted'; channel: ChannelName; acceptedAt: number; expiresAt: number; hold: boolean }
  /**
   * `mayArrive`: its code may be used all the same. `taken`: a channel took it before it failed. `unknown`: of one
   * channel nobody knows whether it did.
   */
  | {
      kind: 'failed';
      reason: FailureReason;
      mayArrive: boolean;
      taken: boolean;
      unknown: boolean;
      retryAfterSeconds?: number;
    }
  /** Another message was sent under the same Idempotency-Key. */
  | { kind: 'duplicate'; messageId: string };

const reasons: Record<RefusalClass, FailureReason> = {
  retry: 'provider_error',
  throttle: 'provider_error',
  pair: 'recipient_throttled',
  unreachable: 'not_on_channel',
  template: 'template_not_ready',
  broken: 'sender_unavailable',
  bug: 'provider_error',
};

/** Meta's advice for the pair limit is to wait 4^X seconds; a minute covers the third try. */
const pairWaitSeconds = 60;

/**
 * What a refusal of WhatsApp means for the message, whether the call said so or a receipt. `own`: it was sent from
 * the account's own number, whose troubles are not those of the shared one.
 */
export const failureOf = (
  refusal: RefusalClass,
  own: boolean,
): { reason: FailureReason; retryAfterSeconds?: number } => ({
  reason: own && refusal === 'broken' ? 'connection_broken' : reasons[refusal],
  ...(refusal === 'pair' ? { retryAfterSeconds: pairWaitSeconds } : {}),
});

/** The error of the contract for a send that no channel took (spec section 7; reference 02 section 12.5). */
export const errorOf = (reason: FailureReason): ErrorCode => {
  switch (reason) {
    case 'not_on_channel':
      return 'CHANNEL_NOT_LINKED';
    case 'template_not_ready':
      return 'TEMPLATE_NOT_READY';
    case 'sender_unavailable':
      return 'CENTRAL_WHATSAPP_PAUSED';
    // Not the shared number's code, and no failure of a channel: a state that ends.
    case 'connection_paused':
      return 'SERVICE_UNAVAILABLE';
    case 'recipient_throttled':
      return 'RATE_LIMIT_EXCEEDED';
    case 'telegram_unavailable':
    case 'telegram_outcome_unknown':
      return 'TELEGRAM_UNAVAILABLE';
    default:
      return 'DELIVERY_FAILED';
  }
};
