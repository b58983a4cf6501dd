// Sending a code, ours or the caller's, once per Idempotency-Key.
import type { IdempotencyToken, StoredAnswer } from '../idempotency/store.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import {
  answerOf,
  inProgress,
  isOpen,
  perform,
  type SendAnswer,
  type SendCommand,
  type SendDeps,
  type SendResult,
} from './perform.ts';

/** The id a taken-over key goes on with, or the answer if its message went out after all. */
const takeOver = async (
  deps: SendDeps,
  command: SendCommand,
  taken: { messageId: string; token: IdempotencyToken },
): Promise<{ id: string } | { answer: SendAnswer }> => {
  const { accountId, mode } = command.principal;
  const recipient = deps.recipients.ofRecipient(accountId, mode, command.phone);
  const live = await deps.live.find({ recipient, id: taken.messageId });
  if (!live || live.whatsapp === 'queued') return { id: taken.messageId };
  const { failedAt, expiresAt } = live.facts;
  if (failedAt === null && expiresAt !== null) {
    return { answer: answerOf(deps, taken.messageId, expiresAt) };
  }
  if (failedAt === null && !live.abandoned) {
    await deps.idempotency.unlock(taken.token);
    throw inProgress();
  }
  const id = newId();
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
    const settle = isOpen(error) ? deps.idempotency.unlock : deps.idempotency.release;
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
