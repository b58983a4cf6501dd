// One call to WhatsApp for a message: by the account's sending number, or by the sandbox.
import type { ChannelResult } from '../channels/channel.ts';
import type { WhatsappChannel } from '../channels/whatsapp.ts';
import type { NoteRefusal } from '../connections/broken.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { SenderWatch } from '../sender/health.ts';
import type { Pauses } from '../sender/pauses.ts';
import type { ResolvedSender, ResolveSender } from '../sender/resolve.ts';
import type { SenderTally } from '../sender/tally.ts';
import type { Delivery } from './delivery.ts';
import { sandboxResult } from './sandbox.ts';

export type CallDeps = {
  whatsapp: WhatsappChannel;
  resolveSender: ResolveSender;
  senders: SenderWatch;
  noteRefusal: NoteRefusal;
  pauses: Pick<Pauses, 'isPaused'>;
  tally: Pick<SenderTally, 'note'>;
  log: Log;
};

/** What the channel said, and with whose number; `paused`: it was not asked, since operators paused that number. */
export type Called = { result: ChannelResult; own: boolean; paused?: boolean };

const senderAnswer = (result: ChannelResult) => {
  if (result.kind !== 'refused') return 'ok';
  if (result.refusal === 'throttle') return 'throttled';
  return result.refusal === 'broken' ? 'broken' : 'ok';
};

const callWhatsapp = async (
  deps: CallDeps,
  delivery: Delivery,
  sender: ResolvedSender,
  code: string,
): Promise<ChannelResult> => {
  const { message, ref } = delivery;
  const startedAt = performance.now();
  const result = await deps.whatsapp.send({
    sender,
    phone: message.phone,
    code,
    echo: `${message.id}.${ref.recipient}`,
  });
  deps.tally.note(sender.phoneNumberId, result, performance.now() - startedAt);
  deps.senders.note(sender.phoneNumberId, senderAnswer(result));
  if (!sender.shared && result.kind === 'refused' && result.refusal === 'broken') {
    deps.noteRefusal(sender.connectionId, result.code);
  }
  return result;
};

const unavailable: ChannelResult = { kind: 'refused', refusal: 'broken', code: 0 };
const later: ChannelResult = { kind: 'refused', refusal: 'retry', code: 0 };

/** Calls the channel of the message's mode; a sending number that is broken or paused is not called at all. */
export const callChannel = async (
  deps: CallDeps,
  delivery: Delivery,
  code: string,
): Promise<Called> => {
  const { message } = delivery;
  if (message.mode === 'test') {
    return { result: sandboxResult(message.phone, 'whatsapp'), own: false };
  }
  let sender: ResolvedSender | undefined;
  try {
    sender = await deps.resolveSender(message.accountId);
  } catch (error) {
    // Whose number to use is not known, and a guess might send from another's.
    deps.log.warn({ reason: describeError(error) }, 'sending number not known');
    return { result: later, own: false };
  }
  if (!sender) return { result: unavailable, own: false };
  // Disconnected meanwhile: the shared number has rules of its own, which this message did not meet.
  if (sender.shared && delivery.own) return { result: unavailable, own: true };
  const own = !sender.shared;
  const { phoneNumberId } = sender;
  if (deps.pauses.isPaused('whatsapp', phoneNumberId)) {
    return { result: unavailable, own, paused: true };
  }
  const idle = (!sender.shared && sender.broken) || deps.senders.paused(phoneNumberId);
  return { result: idle ? unavailable : await callWhatsapp(deps, delivery, sender, code), own };
};
