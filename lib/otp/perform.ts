// One send: every check in its order, then the dispatch, then the caller's answer or error.

import type { QuoteRequest, Quotes } from '../billing/quote.ts';
import { holdMs } from '../billing/rules.ts';
import type { Reservations } from '../idempotency/reservations.ts';
import type { Idempotency } from '../idempotency/store.ts';
import { errorCatalogue, fail, type ServiceError } from '../kernel/errors.ts';
import { idTime, toMessageId } from '../kernel/ids.ts';
import { phoneFacts } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import type { Principal } from '../keys/rules.ts';
import type { AdmissionLimits, Receipt } from '../limits/admission.ts';
import { type Allowance, refusalExtras } from '../limits/answers.ts';
import type { Tier } from '../limits/rules.ts';
import { issueLink } from '../links/issue.ts';
import type { LinkStore } from '../links/store.ts';
import type { Message, Origin } from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import type { PumpingGuard } from '../pumping/refuse.ts';
import type { ResolveSender } from '../sender/resolve.ts';
import { type DispatchDeps, dispatch } from './dispatch.ts';
import type { LiveRef } from './live-message.ts';
import { cooldownSeconds, errorOf, newCode, type Outcome } from './rules.ts';
import { magicError, magicExtras } from './sandbox.ts';

export type SendDeps = DispatchDeps & {
  idempotency: Idempotency;
  reservations: Reservations;
  admission: AdmissionLimits;
  guard: Pick<PumpingGuard, 'check'>;
  quotes: Quotes;
  resolveSender: ResolveSender;
  links: LinkStore;
  messages: MessageStore;
  recipients: RecipientKeys;
  botUsername: string;
};

export type SendCommand = {
  principal: Principal;
  tier: Tier;
  origin: Origin;
  phone: string;
  /** The caller's own code, for a deliver. */
  code: string | undefined;
  requestId: string;
  /** The caller's Idempotency-Key and what it was used for. */
  once: { key: string; fingerprint: string } | undefined;
  /** Told the account's allowances, admitted or not. */
  onWindow(window: Allowance[]): void;
};

export type SendAnswer = {
  message_id: string;
  status: 'sent';
  expires_in: number;
  cooldown_seconds: number;
};

export type SendResult = { data: SendAnswer; originalRequestId: string | undefined };

/** Number types that only cost or cannot receive a message (reference 06 section 3.6). */
const refusedKinds = new Set(['PREMIUM_RATE', 'SHARED_COST', 'PAGER', 'VOICEMAIL', 'UAN']);

const countryOf = ({ principal, phone }: SendCommand): string => {
  const { possible, kind, country } = phoneFacts(phone);
  const refused = !possible || (kind !== undefined && refusedKinds.has(kind));
  // The sandbox's numbers are nobody's, and look it.
  if (refused && principal.mode === 'live') throw fail('INVALID_PHONE');
  return country;
};

const refuseMagic = (deps: SendDeps, { principal, phone }: SendCommand): void => {
  const code = principal.mode === 'test' ? magicError(phone, 'admission') : undefined;
  if (code) throw fail(code, magicExtras(code, deps.clock.now()));
};

const admit = async (
  deps: SendDeps,
  command: SendCommand,
  phoneKey: string,
): Promise<Receipt | null> => {
  const { accountId, keyId, mode } = command.principal;
  const admission = await deps.admission.admit({
    operation: command.origin,
    accountId,
    keyId,
    mode,
    phoneKey,
    tier: command.tier,
  });
  command.onWindow(admission.window);
  if (admission.admitted) return admission.receipt;
  throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(admission.refusal));
};

export const answerOf = (deps: SendDeps, id: string, expiresAt: number): SendAnswer => ({
  message_id: toMessageId(id),
  status: 'sent',
  expires_in: Math.max(Math.ceil((expiresAt - deps.clock.now()) / 1000), 0),
  cooldown_seconds: cooldownSeconds,
});

const waitSeconds = 30;
const retrySeconds = 5;

const outcomeUnknownText =
  'The channel did not say whether it took the message: the code may still arrive, and then it can be used. Until it has expired its price stays held.';

/** The error for a send that no channel took, with what the caller needs to go on. */
const failure = async (
  deps: SendDeps,
  command: SendCommand,
  outcome: Extract<Outcome, { kind: 'failed' }> & { messageId: string },
): Promise<ServiceError> => {
  const code = errorOf(outcome.reason);
  const { accountId, mode } = command.principal;
  const { phone, requestId, origin } = command;
  if (code === 'CHANNEL_NOT_LINKED') {
    const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
    await deps.links.noteAttempt(recipient, { origin, at: idTime(outcome.messageId) });
    const { url } = await issueLink(deps, { accountId, mode, phone, requestId });
    return fail(code, { telegram_bot_url: url });
  }
  const seconds = outcome.retryAfterSeconds ?? waitSeconds;
  if (code === 'RATE_LIMIT_EXCEEDED') {
    const reset = new Date(deps.clock.now() + seconds * 1000).toISOString();
    return fail(code, {
      ...{ reason: 'recipient_protection', layer: 'origin', dimension: 'recipient' },
      ...{ retry_after_seconds: seconds, reset_at: reset },
    });
  }
  const waits = errorCatalogue[code].status === 503;
  const extras = waits ? { retry_after_seconds: seconds } : {};
  if (!outcome.unknown) return fail(code, extras);
  const cause = new OutcomeUnknown('the channel did not answer');
  return fail(code, extras, { cause, message: outcomeUnknownText });
};

export const inProgress = () => fail('IDEMPOTENCY_KEY_IN_PROGRESS', { retry_after_seconds: 1 });

/** The cause of a DELIVERY_FAILED behind a call that had no answer. */
class OutcomeUnknown extends Error {}

/** Whether an error leaves open what happened: nothing is given back. */
const isOpen = (error: unknown): boolean =>
  !(error instanceof Error) ||
  error.name !== 'ServiceError' ||
  (error as ServiceError).code === 'INTERNAL_ERROR';

/** Whether the key stays locked to its message: nobody can say yet that it was not sent. */
export const keepsKey = (error: unknown): boolean =>
  isOpen(error) || (error as Error).cause instanceof OutcomeUnknown;

/** Another message was sent under this key, and only MySQL knew. */
const duplicateAnswer = async (
  deps: SendDeps,
  { principal: { accountId, mode }, phone, origin }: SendCommand,
  { id, keyHash }: { id: string; keyHash: string | null },
): Promise<SendAnswer> => {
  const stored = await deps.messages.find(accountId, id);
  // A failed one under its key is one of which nobody knows whether it was sent.
  if (stored?.facts.expiresAt == null || stored.status === 'failed') {
    // Whatever became of it, its code could not be valid any more: the next attempt sends another.
    const over = deps.clock.now() >= idTime(id) + holdMs;
    if (over) await deps.reservations.release({ id, accountId, mode, idempotencyHash: keyHash });
    throw inProgress();
  }
  // The fingerprint went with Redis; the recipient and the kind of call are still known.
  const { message } = stored;
  if (message.phone !== phone || message.origin !== origin) throw fail('IDEMPOTENCY_KEY_REUSED');
  return answerOf(deps, id, stored.facts.expiresAt);
};

const quoteRequest = async (
  deps: SendDeps,
  { principal: { account, mode } }: SendCommand,
  { country, holdId }: { country: string; holdId: string },
): Promise<QuoteRequest> => {
  // The sandbox asks no sender.
  const sender = mode === 'live' ? await deps.resolveSender(account.id) : undefined;
  return { account, mode, country, holdId, shared: sender?.shared === true };
};

/** Quote, limits, dispatch: what happens once for one Idempotency-Key. */
export const perform = async (
  deps: SendDeps,
  command: SendCommand,
  own: { id: string; keyHash: string | null },
): Promise<SendAnswer> => {
  const { principal, phone, origin, requestId } = command;
  const { accountId, mode } = principal;
  // Nothing is taken from any limit for a send that could not be queued.
  if (!deps.broker.ready())
    throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds });
  refuseMagic(deps, command);
  const country = countryOf(command);
  deps.guard.check(principal, phone);
  const asked = await quoteRequest(deps, command, { country, holdId: own.id });
  const quote = await deps.quotes.send(asked);
  const phoneKey = deps.recipients.ofPhone(phone);
  const [receipt, reachable = null] = await Promise.all([
    admit(deps, command, phoneKey),
    deps.live.reachable(phoneKey),
  ]).catch(async (error: unknown) => {
    await deps.quotes.cancel(asked);
    throw error;
  });
  const message: Message = {
    ...{ id: own.id, accountId, mode, origin, phone, country, requestId },
    ...quote,
    idempotencyHash: own.keyHash,
  };
  const ref: LiveRef = {
    id: own.id,
    recipient: deps.recipients.ofRecipient(accountId, mode, phone),
  };
  let mayArrive = false;
  let taken = false;
  try {
    const code = command.code ?? newCode(mode);
    const outcome = await dispatch(deps, { message, ref, code, reachable, own: !asked.shared });
    if (outcome.kind === 'duplicate') {
      const answer = await duplicateAnswer(deps, command, { ...own, id: outcome.messageId });
      await deps.admission.giveBack(receipt).catch(() => undefined);
      await deps.quotes.cancel(asked);
      return answer;
    }
    if (outcome.kind === 'failed') {
      mayArrive = outcome.mayArrive;
      taken = outcome.taken;
      throw await failure(deps, command, { ...outcome, messageId: own.id });
    }
    return answerOf(deps, own.id, outcome.expiresAt);
  } catch (error) {
    // Nothing was delivered: the same user may try again at once (reference 06 section 2.5).
    if (!isOpen(error)) {
      await deps.admission.giveBack(receipt).catch(() => undefined);
      // A code that may become valid keeps its hold: a success is never without credit.
      if (!mayArrive) await deps.quotes.cancel({ ...asked, taken });
      // A job that died could not free the key in MySQL; one that ended by itself has done so already.
      if (!keepsKey(error)) await deps.reservations.release(message).catch(() => undefined);
    }
    throw error;
  }
};
