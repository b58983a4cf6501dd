// The Telegram Bot API of the simulators: methods under /telegram/bot<token>/ (reference 02 section 9).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { findTelegramPlan } from './behaviours.ts';
import type { Timers } from './clock.ts';
import { type JsonObject, Refusal, readBody, readParameters, sendJson } from './http.ts';
import type { Phones } from './phones.ts';
import type { TelegramPlan } from './plans.ts';
import type { Stats } from './stats.ts';
import { type Chats, chatIdOf, chatOf, phoneOfChat } from './telegram-chats.ts';
import { codeIn, readMarkup, readText, TelegramFailure } from './telegram-text.ts';
import type { Updates } from './telegram-updates.ts';
import { sendProxyPage } from './whatsapp-send.ts';

export type BotOptions = { botToken: string; botUsername: string; webhookSecret: string };

const holdMs = 60_000;
const slowMs = 3000;
const path = /^\/telegram\/bot([^/?]+)\/([^/?]+)\/?(?:\?(.*))?$/;

type MethodCall = { input: JsonObject; request: IncomingMessage; response: ServerResponse };

const waiting = Symbol('waiting');

export type Telegram = ReturnType<typeof createTelegram>;

/** Creates the Bot API of one bot. */
export const createTelegram = (deps: {
  options: BotOptions;
  phones: Phones;
  stats: Stats;
  chats: Chats;
  updates: Updates;
  timers: Timers;
}) => {
  const { options, phones, stats, chats, updates, timers } = deps;

  const me = () => ({
    id: Number(options.botToken.split(':')[0]) || 1,
    is_bot: true,
    first_name: 'Tessera',
    username: options.botUsername,
    can_join_groups: false,
    can_read_all_group_messages: false,
    supports_inline_queries: false,
  });

  const readChat = (given: unknown): string => {
    if (given === undefined || given === '') {
      throw new TelegramFailure(400, 'Bad Request: chat_id is empty');
    }
    const phone = phoneOfChat(Number(given));
    if (!phone) throw new TelegramFailure(400, 'Bad Request: chat not found');
    return phone;
  };

  const planOf = (phone: string): TelegramPlan => {
    const { telegram } = phones.behaviour(phone);
    const name = chats.isBlocked(phone) ? 'blocked' : telegram;
    return findTelegramPlan(name) ?? { about: '', answer: 'ok', arrives: true };
  };

  const arrive = (phone: string, input: JsonObject): JsonObject => {
    const text = readText(input);
    const { copyText, asksContact, removesKeyboard, inline } = readMarkup(input.reply_markup);
    const code = codeIn(text, copyText);
    const messageId = chats.nextMessageId();
    const bubble = { channel: 'telegram' as const, by: 'service' as const, code, text };
    const { atMs } = phones.add(phone, { ...bubble, telegramId: messageId });
    if (code !== null) stats.accepted('telegram', `${phone}:${code}`);
    if (code !== null) stats.delivered('telegram', `${phone}:${code}`);
    chats.tell(phone, { messageId, text, code, asksContact, removesKeyboard, atMs });
    return {
      message_id: messageId,
      from: { id: me().id, is_bot: true, first_name: 'Tessera', username: options.botUsername },
      chat: chatOf(phone),
      date: chats.nowSeconds(),
      text,
      ...(inline ? { reply_markup: inline } : {}),
    };
  };

  const notArriving = (plan: TelegramPlan, { request, response }: MethodCall, delayMs: number) => {
    if (plan.answer === 'html_502') sendProxyPage(response);
    else if (plan.answer === 'cut') request.socket.destroy();
    else timers.after(delayMs, () => request.socket.destroy());
  };

  const sendMessage = (call: MethodCall): unknown => {
    const { input, response } = call;
    const phone = readChat(input.chat_id);
    readMarkup(input.reply_markup);
    readText(input);
    const plan = planOf(phone);
    if (plan.error) {
      const { code, description, retryAfterSeconds } = plan.error;
      throw new TelegramFailure(code, description, retryAfterSeconds);
    }
    const result = plan.arrives ? arrive(phone, input) : {};
    if (plan.arrives) stats.note('telegram', 'accepted');
    const delay = phones.behaviour(phone).delayMs;
    if (plan.answer === 'ok' && !plan.slowAnswer) return result;
    if (plan.answer === 'ok') {
      timers.after(delay ?? slowMs, () => sendJson(response, 200, { ok: true, result }));
      return waiting;
    }
    stats.note('telegram', plan.answer === 'hold' ? 'timeout' : plan.answer);
    notArriving(plan, call, delay ?? holdMs);
    return waiting;
  };

  const deleteMessage = ({ input }: MethodCall): unknown => {
    const phone = readChat(input.chat_id);
    if (phones.remove(phone, Number(input.message_id))) return true;
    throw new TelegramFailure(400, 'Bad Request: message to delete not found');
  };

  const listOf = (given: unknown): string[] | undefined => {
    const value = typeof given === 'string' ? JSON.parse(given) : given;
    return Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;
  };

  const setWebhook = ({ input }: MethodCall): unknown => {
    const url = String(input.url ?? '');
    const secret = String(input.secret_token ?? '');
    if (!/^[\w-]{0,256}$/.test(secret)) {
      throw new TelegramFailure(400, 'Bad Request: secret token contains unallowed characters');
    }
    if (url !== '' && !/^https?:\/\/[^\s]+$/.test(url)) {
      throw new TelegramFailure(400, 'Bad Request: bad webhook: invalid webhook URL specified');
    }
    const maxConnections = Number(input.max_connections ?? 40);
    const allowed = listOf(input.allowed_updates);
    updates.setWebhook(url === '' ? undefined : { url, secret, allowed, maxConnections });
    if (String(input.drop_pending_updates) === 'true') updates.dropPending();
    return true;
  };

  const getUpdates = ({ input }: MethodCall): unknown => {
    if (updates.webhook()) {
      const why =
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
      throw new TelegramFailure(409, why);
    }
    return updates.take(
      Number(input.offset ?? 0),
      Math.min(Number(input.limit ?? 100) || 100, 100),
    );
  };

  const methods: Record<string, (call: MethodCall) => unknown> = {
    getme: me,
    sendmessage: sendMessage,
    deletemessage: deleteMessage,
    setwebhook: setWebhook,
    deletewebhook: ({ input }) => {
      updates.setWebhook(undefined);
      if (String(input.drop_pending_updates) === 'true') updates.dropPending();
      return true;
    },
    getwebhookinfo: () => ({
      url: updates.webhookUrl(),
      has_custom_certificate: false,
      pending_update_count: updates.pending(),
      max_connections: updates.webhook()?.maxConnections ?? 40,
      ...(updates.webhook()?.allowed ? { allowed_updates: updates.webhook()?.allowed } : {}),
    }),
    getupdates: getUpdates,
  };

  const call = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request);
    const [, token = '', method = '', search = ''] = path.exec(request.url ?? '') ?? [];
    if (!token) throw new TelegramFailure(404, 'Not Found');
    if (token !== options.botToken) throw new TelegramFailure(401, 'Unauthorized');
    const run = methods[method.toLowerCase()];
    if (!run) throw new TelegramFailure(404, 'Not Found: method not found');
    const input = readParameters(request, body, new URLSearchParams(search));
    const result = run({ input, request, response });
    if (result === waiting) return;
    if (method.toLowerCase() !== 'sendmessage') stats.note('telegram', method);
    sendJson(response, 200, { ok: true, result });
  };

  return {
    /** Answers one call under /telegram/. */
    handle: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      try {
        await call(request, response);
      } catch (error) {
        if (!(error instanceof TelegramFailure || error instanceof Refusal)) throw error;
        const code = error instanceof TelegramFailure ? error.code : 400;
        const retryAfter = error instanceof TelegramFailure ? error.retryAfterSeconds : undefined;
        stats.note('telegram', `error_${code}`);
        const parameters = retryAfter ? { parameters: { retry_after: retryAfter } } : {};
        const envelope = { ok: false, error_code: code, description: error.message, ...parameters };
        sendJson(response, code, envelope, retryAfter ? { 'retry-after': String(retryAfter) } : {});
      }
    },
    /** The chat id of a phone, as the bot sees it. */
    chatIdOf,
  };
};
