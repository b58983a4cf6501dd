// Sending a code, ours or the caller's, once per Idempotency-Key.

import { holdMs } from '../billing/rules.ts';
import type { IdempotencyToken, StoredAnswer } from '../idempotency/store.ts';
import { fail } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import { isUnknown } from '../messages/rules.ts';
import type { LiveMessage } from './live-message.ts';
import {
  answerOf,
  inProgress,
  keepsKey,
  perform,
  type SendAnswer,
  type SendCommand,
  type SendDeps,
  type SendResult,
} from './perform.ts';

/** Between the id of a message and the deadline of its job lies what is asked before it is sent. */
const deadlineRoomMs = 5_000;

/** What to do with the message of a key that is taken over: answer it, go on with it, wait, or send another. */
type Verdict = { expiresAt: number } | 'same' | 'wait' | 'another';

const judgeLive = ({ clock }: SendDeps, id: string, live: LiveMessage): Verdict => {
  if (live.whatsapp === 'queued') return 'same';
  const { failedAt, expiresAt, failureReason } = live.facts;
  if (failedAt === null) {
    if (expiresAt !== null) return { expiresAt };
    if (!live.abandoned) return 'wait';
  }
  // Nobody knows whether the recipient has it: a second one goes out only when that code could not be valid any more.
  const unknown = [failureReason, live.lostWhatsapp, live.lostTelegram].some(isUnknown);
  const open = unknown && clock.now() < idTime(id) + holdMs;
  return open ? 'wait' : 'another';
};

/** Redis remembers no such message: it was never begun, or it is over and only its row can tell. */
const judgeForgotten = async (
  { clock, messages, sendDeadlineMs }: SendDeps,
  accountId: string,
  id: string,
): Promise<Verdict> => {
  // Its job may still wait in the queue, and the claim keeps it one message.
  if (clock.now() < idTime(id) + sendDeadlineMs + deadlineRoomMs) return 'same';
  const facts = (await messages.find(accountId, id))?.facts;
  return facts?.expiresAt == null || facts.failedAt !== null
    ? 'another'
    : { expiresAt: facts.expiresAt };
};

/** The id a taken-over key goes on with, or the answer if its message went out after all. */
const takeOver = async (
  deps: SendDeps,
  command: SendCommand,
  taken: { messageId: string; token: IdempotencyToken },
): Promise<{ id: string } | { answer: SendAnswer }> => {
  const { accountId, mode } = command.principal;
  const recipient = deps.recipients.ofRecipient(accountId, mode, command.phone);
  const live = await deps.live.find({ recipient, id: taken.messageId });
  const verdict = live
    ? judgeLive(deps, taken.messageId, live)
    : await judgeForgotten(deps, accountId, taken.messageId);
  if (verdict === 'same') return { id: taken.messageId };
  if (typeof verdict === 'object') {
    return { answer: answerOf(deps, taken.messageId, verdict.expiresAt) };
  }
  if (verdict === 'wait') {
    await deps.idempotency.unlock(taken.token);
    throw inProgress();
  }
  const id = newId();
  const { keyHash: idempotencyHash } = taken.token;
  await deps.reservations.release({ id: taken.messageId, accountId, mode, idempotencyHash });
  await deps.idempotency.renewMessageId(taken.token, id);
  return { id };
};

const performOnce = async (
  deps: SendDeps,
  command: SendCommand,
  own: { messageId: string; token: IdempotencyToken; taken: boolean },
): Promise<SendResult> => {
  const { token, messageId, taken } = own;
  const keep = async (data: SendAnswer): Promise<SendResult> => {
    const answer: StoredAnswer = { status: 200, data, requestId: command.requestId };
    // The code is out, whether or not Redis can note it: a later retry finds the message by its id.
    await deps.idempotency.complete(token, answer).catch(() => undefined);
    return { data, originalRequestId: undefined };
  };
  try {
    const start = taken ? await takeOver(deps, command, own) : { id: messageId };
    if ('answer' in start) return await keep(start.answer);
    return await keep(await perform(deps, command, { id: start.id, keyHash: token.keyHash }));
  } catch (error) {
    const settle = keepsKey(error) ? deps.idempotency.unlock : deps.idempotency.release;
    await settle(token).catch(() => undefined);
    throw error;
  }
};

/**
 * POST /v1/otp/send and /v1/otp/deliver. With an Idempotency-Key an answer that had an effect is replayed before
 * limits and credit are looked at (design section 4).
 * @throws the errors of spec section 7 that a send can give
 */
export const sendOtp = async (deps: SendDeps, command: SendCommand): Promise<SendResult> => {
  const id = newId();
  if (!command.once) {
    const data = await perform(deps, command, { id, keyHash: null });
    return { data, originalRequestId: undefined };
  }
  const { accountId, mode } = command.principal;
  const beginning = await deps.idempotency.begin({
    accountId,
    mode,
    messageId: id,
    ...command.once,
  });
  switch (beginning.kind) {
    case 'mismatch':
      throw fail('IDEMPOTENCY_KEY_REUSED');
    case 'in_progress':
      throw inProgress();
    case 'replay': {
      const { data, requestId } = beginning.answer;
      return { data: data as SendAnswer, originalRequestId: requestId };
    }
    default:
      return performOnce(deps, command, { ...beginning, taken: beginning.kind === 'takeover' });
  }
};
