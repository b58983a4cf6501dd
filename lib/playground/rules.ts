// What a phone would show: the words of the channels, for visitors who try without a phone.
import { codeText } from '../channels/telegram.ts';
import { type ChannelName, codeLifeSeconds } from '../messages/rules.ts';

/** Spec section 8: one playground send per recipient and minute. */
export const playgroundCooldownSeconds = 60;

export type Preview = { channel: ChannelName; text: string; code: string };

const plain = (html: string): string => html.replace(/<[^>]+>/g, '');

/** WhatsApp's own words for an authentication template in English with the security recommendation. */
const whatsappText = (code: string): string =>
  `${code} is your verification code. For your security, do not share this code.`;

/** The message a phone shows for `code`, as plain text. */
export const previewOf = (channel: ChannelName, code: string): Preview => ({
  channel,
  code,
  text: channel === 'telegram' ? plain(codeText(code, codeLifeSeconds / 60)) : whatsappText(code),
});
