// Telegram's Bot API: messages to chats, and recipients who press Start, share a contact or block the bot.
import type { Deliveries } from './deliveries.ts';
import type { Phones } from './phones.ts';
import type { Answer } from './server.ts';
import type { Stats } from './stats.ts';

export type TelegramSettings = { botToken: string; botUsername: string; webhookSecret: string };

type Json = Record<string, unknown>;
type BotMessage = { text: string; asksForContact: boolean };
type Chat = { id: number; phone: string; messages: BotMessage[]; wake: (() => void) | undefined };

export type StartResult = { messages: string[]; asked: boolean; shared: boolean };

export type TelegramSim = {
  /** Serves a method of the bot whose token is in the path. */
  serve(token: string, method: string, body: Json): Promise<Answer>;
  /** A phone's owner taps a link; `contact` is shared when the bot asks (null: none). */
  start(phone: string, url: string, contact: string | null): Promise<StartResult>;
  membership(phone: string, status: 'kicked' | 'member'): Promise<void>;
  reset(): void;
  close(): void;
};

const failure = (code: number, description: string, parameters?: Json): Answer => ({
  status: code,
  json: { ok: false, error_code: code, description, ...(parameters ? { parameters } : {}) },
  ...(parameters?.retry_after
    ? { headers: { 'retry-after': String(parameters.retry_after) } }
    : {}),
});

const success = (result: unknown): Answer => ({ status: 200, json: { ok: true, result } });

const hangMs = 60_000;
/** How long a person waits for the bot to say something. */
const patienceMs = 5_000;
/** After the last word of the bot, one more may follow within this time. */
const quietMs = 300;

/** Telegram users have ids of their own; here they follow from the phone. */
const chatIdOf = (phone: string): number =>
  5_000_000_000 + (Number(phone.slice(1)) % 1_000_000_000);

const codeIn = (text: string): string | null => /<code>(\d{4,8})<\/code>/.exec(text)?.[1] ?? null;
const plain = (text: string): string => text.replace(/<[^>]+>/g, '');

const refusal = (behaviour: string): Answer | undefined => {
  switch (behaviour) {
    case 'blocked':
      return failure(403, 'Forbidden: bot was blocked by the user');
    case 'deactivated':
      return failure(403, 'Forbidden: user is deactivated');
    case 'chat_not_found':
      return failure(400, 'Bad Request: chat not found');
    case 'rate_limited':
      return failure(429, 'Too Many Requests: retry after 30', { retry_after: 30 });
    case 'rate_limited_briefly':
      return failure(429, 'Too Many Requests: retry after 1', { retry_after: 1 });
    case 'http_500':
      return failure(500, 'Internal Server Error');
    case 'unauthorized':
      return failure(401, 'Unauthorized');
    default:
      return undefined;
  }
};

/** The simulated Bot API. */
export const createTelegramSim = (deps: {
  settings: TelegramSettings;
  phones: Phones;
  stats: Stats;
  deliveries: Deliveries;
}): TelegramSim => {
  const { settings, phones, stats, deliveries } = deps;
  const chats = new Map<number, Chat>();
  const hanging = new Set<NodeJS.Timeout>();
  let nextUpdate = Math.floor(Date.now() / 1000);
  let nextMessage = 1;

  const chatOf = (phone: string): Chat => {
    const id = chatIdOf(phone);
    const chat = chats.get(id) ?? { id, phone, messages: [], wake: undefined };
    chats.set(id, chat);
    return chat;
  };

  const push = (update: Json): Promise<boolean> =>
    deliveries.send(
      '/v1/inbound/telegram',
      { 'x-telegram-bot-api-secret-token': settings.webhookSecret },
      Buffer.from(JSON.stringify({ update_id: nextUpdate++, ...update })),
    );

  const say = (chat: Chat, content: Json): Promise<boolean> => {
    const person = { id: chat.id, is_bot: false, first_name: 'Sam', language_code: 'en' };
    const message = {
      message_id: nextMessage++,
      date: Math.floor(Date.now() / 1000),
      from: person,
      chat: { id: chat.id, type: 'private', first_name: 'Sam' },
      ...content,
    };
    return push({ message });
  };

  const hang = (): Promise<Answer> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => resolve(failure(504, 'Gateway Timeout')), hangMs);
      timer.unref();
      hanging.add(timer);
    });

  const sendMessage = async (body: Json): Promise<Answer> => {
    const chat = chats.get(Number(body.chat_id));
    const text = String(body.text ?? '');
    if (!chat) return failure(400, 'Bad Request: chat not found');
    if (text === '') return failure(400, 'Bad Request: message text is empty');
    if (text.length > 4096) return failure(400, 'Bad Request: message is too long');
    const { telegram } = phones.behaviourOf(chat.phone);
    const code = codeIn(text);
    // A behaviour is about codes: the talk that leads to a link goes on.
    if (code !== null) stats.count('telegram', telegram);
    if (code !== null && telegram === 'timeout') return hang();
    const refused = code === null ? undefined : refusal(telegram);
    if (refused) return refused;
    if (code !== null) {
      stats.accepted('telegram', `${chat.phone}:${code}`);
      stats.delivered('telegram', `${chat.phone}:${code}`);
    }
    const keyboard = (
      body.reply_markup as { keyboard?: { request_contact?: boolean }[][] } | undefined
    )?.keyboard;
    const asksForContact =
      keyboard?.flat().some((button) => button.request_contact === true) ?? false;
    chat.messages.push({ text: plain(text), asksForContact });
    phones.receive(chat.phone, { channel: 'telegram', code, text: plain(text) });
    chat.wake?.();
    return success({
      message_id: nextMessage++,
      date: Math.floor(Date.now() / 1000),
      chat: { id: chat.id, type: 'private' },
      text: plain(text),
    });
  };

  /** Waits until the bot has said something more than `seen` messages, or is quiet for `ms`. */
  const listen = (chat: Chat, seen: number, ms: number): Promise<boolean> =>
    new Promise((resolve) => {
      if (chat.messages.length > seen) return resolve(true);
      const timer = setTimeout(() => {
        chat.wake = undefined;
        resolve(false);
      }, ms);
      chat.wake = () => {
        clearTimeout(timer);
        chat.wake = undefined;
        resolve(true);
      };
    });

  /** Hears the bot out: one answer, and whatever follows it closely. */
  const hearOut = async (chat: Chat, seen: number): Promise<void> => {
    if (!(await listen(chat, seen, patienceMs))) return;
    while (await listen(chat, chat.messages.length, quietMs));
  };

  const share = async (chat: Chat, contact: string): Promise<void> => {
    const own = contact === chat.phone;
    const card = {
      phone_number: contact.replace('+', ''),
      first_name: own ? 'Sam' : 'Alex',
      ...(own ? { user_id: chat.id } : { user_id: chatIdOf(contact) }),
    };
    await say(chat, { contact: card });
  };

  const start: TelegramSim['start'] = async (phone, url, contact) => {
    const payload = new URL(url).searchParams.get('start') ?? '';
    const chat = chatOf(phone);
    const before = chat.messages.length;
    const text = `/start ${payload}`.trim();
    await say(chat, { text, entities: [{ type: 'bot_command', offset: 0, length: 6 }] });
    await hearOut(chat, before);
    const asked = chat.messages.slice(before).some(({ asksForContact }) => asksForContact);
    const shared = asked && contact !== null;
    if (shared) {
      const heard = chat.messages.length;
      await share(chat, contact);
      await hearOut(chat, heard);
    }
    return { messages: chat.messages.slice(before).map((message) => message.text), asked, shared };
  };

  const serve: TelegramSim['serve'] = async (token, method, body) => {
    if (token !== settings.botToken) return failure(401, 'Unauthorized');
    switch (method) {
      case 'sendMessage':
        return sendMessage(body);
      case 'getMe':
        return success({
          id: 1,
          is_bot: true,
          first_name: 'Tessera',
          username: settings.botUsername,
        });
      case 'setWebhook':
      case 'deleteWebhook':
      case 'deleteMessage':
        return success(true);
      case 'getWebhookInfo':
        return success({ url: 'simulated', pending_update_count: deliveries.pending() });
      case 'getUpdates':
        return failure(409, "Conflict: can't use getUpdates method while webhook is active");
      default:
        return failure(404, 'Not Found');
    }
  };

  return {
    serve,
    start,
    membership: async (phone, status) => {
      const chat = chatOf(phone);
      const person = { id: chat.id, is_bot: false, first_name: 'Sam' };
      const change = { chat: { id: chat.id, type: 'private' }, from: person, date: 0 };
      await push({ my_chat_member: { ...change, new_chat_member: { status, user: person } } });
    },
    reset: () => {
      for (const chat of chats.values()) chat.messages = [];
    },
    close: () => {
      for (const timer of hanging) clearTimeout(timer);
    },
  };
};
