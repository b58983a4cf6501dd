// One call to WhatsApp for a message: by the account's sending number, or by the sandbox.
import type { ChannelResult } from '../channels/channel.ts';
import type { WhatsappChannel } from '../channels/whatsapp.ts';
import type { SenderWatch } from '../sender/health.ts';
import type { ResolvedSender, ResolveSender } from '../sender/resolve.ts';
import type { Delivery } from './delivery.ts';
import { sandboxResult } from './sandbox.ts';

export type CallDeps = {
  whatsapp: WhatsappChannel;
  resolveSender: ResolveSender;
  senders: SenderWatch;
};

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
  const result = await deps.whatsapp.send({
    sender,
    phone: message.phone,
    code,
    echo: `${message.id}.${ref.recipient}`,
  });
  deps.senders.note(sender.phoneNumberId, senderAnswer(result));
  return result;
};

const unavailable: ChannelResult = { kind: 'refused', refusal: 'broken', code: 0 };

/** Calls the channel of the message's mode; a sending number that is paused is not called at all. */
export const callChannel = async (
  deps: CallDeps,
  delivery: Delivery,
  code: string,
): Promise<ChannelResult> => {
  const { message } = delivery;
  if (message.mode === 'test') return sandboxResult(message.phone, 'whatsapp');
  const sender = await deps.resolveSender(message.accountId);
  if (!sender || deps.senders.paused(sender.phoneNumberId)) return unavailable;
  return callWhatsapp(deps, delivery, sender, code);
};
