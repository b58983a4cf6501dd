// Verifying a code: limits, one atomic check, and the settlement that billing confirms.
import type { Quotes } from '../billing/quote.ts';
import type { Broker } from '../infra/queue/broker.ts';
import { QueueFull } from '../infra/queue/errors.ts';
import type { EventWire } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { within } from '../kernel/in-time.ts';
import type { Log } from '../kernel/log.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { describeError } from '../kernel/redact.ts';
import type { NamedKey } from '../kernel/secrets.ts';
import type { Principal } from '../keys/rules.ts';
import type { AdmissionLimits } from '../limits/admission.ts';
import { refusalExtras } from '../limits/answers.ts';
import type { Tier } from '../limits/rules.ts';
import type { Announcer } from '../messages/announce.ts';
import { messageEvent } from '../messages/events.ts';
import type { NewsStore } from '../messages/news-store.ts';
import { type Facts, type Message, noFacts } from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import { verdictAfterAll } from './certainty.ts';
import type { CodeMac, Verdict } from './live-message.ts';
import { blockMs, codeMacs, failedAttempts } from './rules.ts';
import { magicError, magicExtras } from './sandbox.ts';
import type { LiveStore } from './store.ts';

export type VerifyDeps = {
  broker: Pick<Broker, 'ready' | 'expectReplies' | 'replyAddress'>;
  admission: AdmissionLimits;
  live: LiveStore;
  messages: MessageStore;
  announcer: Announcer;
  news: Pick<NewsStore, 'keep'>;
  quotes: Pick<Quotes, 'keep'>;
  recipients: RecipientKeys;
  peppers: readonly NamedKey[];
  clock: Clock;
  log: Log;
  settleDeadlineMs: number;
};

export type VerifyCommand = { principal: Principal; tier: Tier; phone: string; code: string };

const retrySeconds = 5;

const admit = async (
  deps: VerifyDeps,
  { principal, tier, phone }: VerifyCommand,
): Promise<void> => {
  const { accountId, keyId, mode } = principal;
  const phoneKey = deps.recipients.ofPhone(phone);
  const admission = await deps.admission.admit({
    ...{ operation: 'verify', accountId, keyId, mode, phoneKey, tier },
  });
  if (!admission.admitted) throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(admission.refusal));
};

const blocked = (waitMs: number, now: number) => {
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return fail('TOO_MANY_ATTEMPTS', {
    ...{ reason: 'failed_verifications', layer: 'origin', dimension: 'recipient' },
    retry_after_seconds: seconds,
    reset_at: new Date(now + seconds * 1000).toISOString(),
    window_seconds: blockMs / 1000,
    limit: failedAttempts,
  });
};

/** Resolves with whether every queue has the event: one that is full may be another than ours, and then it is settled. */
const announce = async ({ announcer }: VerifyDeps, event: EventWire): Promise<boolean> => {
  try {
    await announcer.announce(event);
    return true;
  } catch (error) {
    if (error instanceof QueueFull) return false;
    throw error;
  }
};

/** How long the answer waits for MySQL to keep what the broker did not take. */
const keepPatienceMs = 1_000;

/**
 * Not every queue took it: it is told from MySQL as soon as they do, and those that have it know it by its id. Failing
 * that, the sweep finds a verification that was not settled in Redis.
 */
const keepEvent = async ({ news, log }: VerifyDeps, event: EventWire): Promise<void> => {
  const kept = news.keep(event).catch((error: unknown) => {
    log.error({ event_id: event.id, reason: describeError(error) }, 'verified, not kept in mysql');
  });
  await within(keepPatienceMs, kept);
};

/** Announces the verification and waits until billing has settled it. */
const settle = async (deps: VerifyDeps, message: Message, facts: Facts): Promise<void> => {
  const waiter = `settle:${message.id}`;
  const event = messageEvent('otp.verified', message, facts.verifiedAt ?? 0, facts);
  const replies = deps.broker.expectReplies(waiter);
  let everywhere = false;
  try {
    const announced = announce(deps, { ...event, waiter }).then((all) => {
      everywhere = all;
    });
    // A confirm that does not come in time may still be followed by an answer.
    await within(deps.settleDeadlineMs, announced);
    const settled = await replies.next(deps.settleDeadlineMs);
    if (settled === undefined) throw new Error('billing did not answer in time');
    // Charged; but others whose queue was full have not heard of it.
    if (!everywhere) await keepEvent(deps, event);
  } catch (error) {
    const reason = describeError(error);
    deps.log.warn({ message_id: message.id, reason }, 'verified, not settled');
    // The charge follows: from the queue where the event is, else from MySQL.
    await Promise.all([deps.quotes.keep(message), everywhere || keepEvent(deps, event)]);
    throw fail('BILLING_ERROR', {}, { cause: error });
  } finally {
    replies.close();
  }
};

const onVerified = async (
  deps: VerifyDeps,
  command: VerifyCommand,
  verdict: Extract<Verdict, { kind: 'verified' }>,
): Promise<void> => {
  const { accountId } = command.principal;
  // Redis has the message as long as its code; MySQL has it should Redis have lost it.
  const message =
    verdict.message ?? (await deps.messages.find(accountId, verdict.messageId))?.message;
  if (!message) throw fail('BILLING_ERROR', {}, { cause: new Error('the message is not known') });
  const { mode } = command.principal;
  await settle(deps, message, { ...noFacts, ...verdict.facts });
  // Said in the sandbox after the fact: the verification stands, with its event, as after a real one.
  if (mode === 'test' && magicError(command.phone, 'verify') === 'BILLING_ERROR') {
    throw fail('BILLING_ERROR');
  }
};

const refuseMagic = (deps: VerifyDeps, { principal, phone }: VerifyCommand): void => {
  const code = principal.mode === 'test' ? magicError(phone, 'verify') : undefined;
  if (code && code !== 'BILLING_ERROR') throw fail(code, magicExtras(code, deps.clock.now()));
};

/** Checks the code in Redis. Where the answer is lost, the code may have been used up: that is asked before it is said. */
const check = async (
  deps: VerifyDeps,
  recipient: string,
  { macs, now }: { macs: CodeMac[]; now: number },
): Promise<Verdict> => {
  const attempt = newId();
  try {
    return await deps.live.verify(recipient, macs, now, attempt);
  } catch (cause) {
    const verdict = await verdictAfterAll(deps, recipient, { attempt, at: now }).catch(
      () => undefined,
    );
    // Still nobody knows: that is no "nothing was done". Its status tells, and its charge follows.
    if (!verdict) throw fail('INTERNAL_ERROR', {}, { cause });
    return verdict;
  }
};

/**
 * POST /v1/otp/verify: succeeds once, for the newest code a channel took, within its life.
 * @throws OTP_NOT_FOUND, INVALID_CODE, TOO_MANY_ATTEMPTS, RATE_LIMIT_EXCEEDED, BILLING_ERROR (the verification
 * stands), SERVICE_UNAVAILABLE (nothing was checked), INTERNAL_ERROR (the code may have been used up)
 */
export const verifyOtp = async (deps: VerifyDeps, command: VerifyCommand): Promise<void> => {
  const { principal, phone, code } = command;
  // A code is used up by being right, so nothing is checked that could not be settled.
  if (!deps.broker.ready())
    throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds });
  refuseMagic(deps, command);
  await admit(deps, command);
  const recipient = deps.recipients.ofRecipient(principal.accountId, principal.mode, phone);
  const now = deps.clock.now();
  const macs = codeMacs(deps.peppers, recipient, code);
  const verdict = await check(deps, recipient, { macs, now });
  switch (verdict.kind) {
    case 'verified':
      return onVerified(deps, command, verdict);
    case 'wrong':
      throw fail('INVALID_CODE', { attempts_remaining: verdict.remaining });
    case 'blocked':
      throw blocked(verdict.waitMs, now);
    default:
      throw fail('OTP_NOT_FOUND');
  }
};
