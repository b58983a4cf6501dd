// The Telegram Bot API: messages to linked chats, and what its updates say (reference 02 section 9).
import type { Http, HttpAnswer } from '../infra/http.ts';
import { ask, type ChannelResult, child, parseObject } from './channel.ts';

type Text = { chatId: number; text: string; markup?: unknown; protect?: boolean };

export type TelegramChannel = {
  /** Sends a code to a chat. */
  sendCode(chatId: number, code: string, minutes: number): Promise<ChannelResult>;
  /** Says something to a chat. */
  say(chatId: number, text: string): Promise<ChannelResult>;
  /** Asks for the own contact with one tap; the button stays until `closeKeyboard`. */
  askForContact(chatId: number, text: string, button: string): Promise<ChannelResult>;
  /** Says something and takes the contact button away. */
  closeKeyboard(chatId: number, text: string): Promise<ChannelResult>;
};

const gone = /chat not found|user is deactivated|user not found|PEER_ID_INVALID/i;

const classify = (code: number, description: string) => {
  if (code === 403 || (code === 400 && gone.test(description))) return 'unreachable';
  if (code === 429) return 'throttle';
  if (code === 401 || code === 404) return 'broken';
  return 'bug';
};

const readAnswer = ({ status, text }: HttpAnswer): ChannelResult => {
  const body = parseObject(text);
  if (body?.ok === true) {
    return { kind: 'accepted', providerId: String(child(body, 'result')?.message_id ?? '') };
  }
  const code = typeof body?.error_code === 'number' ? body.error_code : status;
  // No idempotency and no receipts here: after a 5xx the message may have been sent, so it is not sent again.
  if (!body || code >= 500) return { kind: 'unknown', detail: `HTTP ${status}` };
  const retryAfter = child(body, 'parameters')?.retry_after;
  return {
    kind: 'refused',
    refusal: classify(code, String(body.description ?? '')),
    code,
    ...(typeof retryAfter === 'number' ? { retryAfterSeconds: retryAfter } : {}),
  };
};

/** The message a code goes out in, as Telegram's HTML. */
export const codeText = (code: string, minutes: number): string =>
  `Your verification code is <code>${code}</code>\n\nIt is valid for ${minutes} minutes. Do not share it with anybody.`;

/** The Bot API at `baseUrl` as the bot of `token`. Calls never throw: what failed is in the result. */
export const createTelegram = (options: {
  http: Http;
  baseUrl: string;
  token: string;
}): TelegramChannel => {
  const send = ({ chatId, text, markup, protect }: Text): Promise<ChannelResult> => {
    const request = {
      method: 'POST',
      url: `${options.baseUrl}/bot${options.token}/sendMessage`,
      json: {
        chat_id: chatId,
        text,
        parse_mode: 'HTML',
        ...(protect ? { protect_content: true } : {}),
        ...(markup ? { reply_markup: markup } : {}),
      },
    } as const;
    return ask(options.http, request, readAnswer);
  };

  return {
    sendCode: (chatId, code, minutes) =>
      send({
        chatId,
        text: codeText(code, minutes),
        protect: true,
        markup: { inline_keyboard: [[{ text: 'Copy code', copy_text: { text: code } }]] },
      }),
    say: (chatId, text) => send({ chatId, text }),
    askForContact: (chatId, text, button) =>
      send({
        chatId,
        text,
        markup: {
          keyboard: [[{ text: button, request_contact: true }]],
          one_time_keyboard: true,
          resize_keyboard: true,
        },
      }),
    closeKeyboard: (chatId, text) => send({ chatId, text, markup: { remove_keyboard: true } }),
  };
};
