// What a phone's owner does in the simulated Telegram: opens a link, shares a contact, blocks the bot (reference 02 sections 9.3 and 9.4).
import type { Timers } from './clock.ts';
import { isObject, type JsonObject, Refusal } from './http.ts';
import { type Phones, parsePhone } from './phones.ts';
import type { BotOptions } from './telegram.ts';
import { type BotMessage, type Chats, chatIdOf, chatOf, userOf } from './telegram-chats.ts';
import type { Updates } from './telegram-updates.ts';

/**
 * The card to share: undefined the own number, null none, text another number as a foreign card,
 * or an object for the exact shape.
 */
export type Contact =
  | undefined
  | null
  | string
  | { phone: string; userId: 'own' | 'none' | number; forwarded: boolean };

export type StartResult = {
  /** What the bot wrote, in order, codes included. */
  messages: string[];
  /** The newest code among them. */
  code: string | null;
  contact_asked: boolean;
  contact_shared: boolean;
  /** True when the bot sent a code: it regards phone and chat as linked. Otherwise the chat cannot tell. */
  linked?: true;
};

/** How long the whole exchange may take, and how long the bot may be silent before it counts as finished. */
export type Patience = { boundMs: number; quietMs: number };

const standardPatience: Patience = { boundMs: 5000, quietMs: 700 };
const afterCodeMs = 150;

const linkPattern = /^(?:https?:\/\/)?(?:t\.me|telegram\.me)\/(\w+)(?:\?(.*))?$/i;
const schemePattern = /^tg:\/\/resolve\?(.*)$/i;

/** The payload of a deep link to our bot; empty when there is none. @throws Refusal 400 */
export const readLink = (url: unknown, botUsername: string): string => {
  if (typeof url !== 'string') throw new Refusal(400, 'url is required: a https://t.me/… link.');
  const [, name = '', search = ''] = linkPattern.exec(url.trim()) ?? [];
  const scheme = new URLSearchParams(schemePattern.exec(url.trim())?.[1] ?? '');
  const bot = name || scheme.get('domain') || '';
  if (bot.toLowerCase() !== botUsername.toLowerCase()) {
    throw new Refusal(400, `The link does not lead to the bot ${botUsername}.`);
  }
  const payload = (name ? new URLSearchParams(search) : scheme).get('start') ?? '';
  if (payload !== '' && !/^[\w-]{1,64}$/.test(payload)) {
    throw new Refusal(400, 'The start payload must be 1 to 64 of A-Z a-z 0-9 _ -.');
  }
  return payload;
};

/** Reads the `contact` of a request body. @throws Refusal 400 */
export const readContact = (given: unknown): Contact => {
  if (given === undefined || given === null) return given;
  if (typeof given === 'string') return parsePhone(given);
  if (!isObject(given) || typeof given.phone_number !== 'string') {
    throw new Refusal(
      400,
      'contact must be null, a phone number, or {phone_number, user_id?, forwarded?}.',
    );
  }
  const { user_id: userId = 'none', forwarded } = given;
  if (userId !== 'own' && userId !== 'none' && typeof userId !== 'number') {
    throw new Refusal(400, 'contact.user_id must be "own", "none" or a number.');
  }
  return { phone: parsePhone(given.phone_number), userId, forwarded: forwarded === true };
};

export type TelegramOwner = ReturnType<typeof createTelegramOwner>;

/** Creates the owners' side of the chats. */
export const createTelegramOwner = (deps: {
  options: BotOptions;
  phones: Phones;
  chats: Chats;
  updates: Updates;
  timers: Timers;
}) => {
  const { chats, phones, updates, timers } = deps;

  const frame = (e164: string): JsonObject => ({
    message_id: chats.nextMessageId(),
    from: userOf(e164),
    chat: chatOf(e164),
    date: chats.nowSeconds(),
  });

  const show = (e164: string, text: string) => {
    phones.add(e164, { channel: 'telegram', by: 'owner', code: null, text });
  };

  const member = (e164: string, from: string, to: string): Promise<boolean> => {
    const status = (value: string) => ({
      user: {
        id: Number(deps.options.botToken.split(':')[0]) || 1,
        is_bot: true,
        first_name: 'Tessera',
      },
      status: value,
      ...(value === 'kicked' ? { until_date: 0 } : {}),
    });
    return updates.push(chatIdOf(e164), 'my_chat_member', {
      chat: chatOf(e164),
      from: userOf(e164),
      date: chats.nowSeconds(),
      old_chat_member: status(from),
      new_chat_member: status(to),
    });
  };

  const unblock = async (e164: string): Promise<void> => {
    if (!chats.isBlocked(e164)) return;
    chats.setBlocked(e164, false);
    await member(e164, 'kicked', 'member');
  };

  const say = (e164: string, text: string): Promise<boolean> => {
    show(e164, text);
    const command = /^\/\w+/.exec(text)?.[0];
    return updates.push(chatIdOf(e164), 'message', {
      ...frame(e164),
      text,
      ...(command
        ? { entities: [{ type: 'bot_command', offset: 0, length: command.length }] }
        : {}),
    });
  };

  // A foreign card has its own owner's user id, or none when that person is not on Telegram.
  const cardOf = (e164: string, contact: Exclude<Contact, null>) => {
    if (contact === undefined) return { phone: e164, userId: chatIdOf(e164), forwarded: false };
    if (typeof contact === 'string') {
      return { phone: contact, userId: chatIdOf(contact), forwarded: false };
    }
    const { phone, userId, forwarded } = contact;
    const ids = { own: chatIdOf(e164), none: undefined };
    return { phone, userId: typeof userId === 'number' ? userId : ids[userId], forwarded };
  };

  const shareContact = (e164: string, contact: Exclude<Contact, null>): Promise<boolean> => {
    const { phone, userId, forwarded } = cardOf(e164, contact);
    show(e164, `Contact ${phone}${forwarded ? ' (forwarded)' : ''}`);
    const other = { type: 'user', date: chats.nowSeconds(), sender_user: userOf(phone) };
    return updates.push(chatIdOf(e164), 'message', {
      ...frame(e164),
      ...(forwarded ? { forward_origin: other } : {}),
      // Clients write the number without its plus.
      contact: {
        phone_number: phone.slice(1),
        first_name: userOf(phone).first_name,
        ...(userId === undefined ? {} : { user_id: userId }),
      },
    });
  };

  // Runs an exchange and collects what the bot says, until it is quiet or time is up.
  const converse = (
    e164: string,
    contact: Contact,
    patience: Patience,
    begin: () => Promise<unknown>,
  ): Promise<StartResult> =>
    new Promise((resolve) => {
      const heard: BotMessage[] = [];
      let asked = false;
      let shared = false;
      let last = 0;
      const finish = () => {
        stop();
        const messages = heard.map(({ text }) => text);
        const code = heard.findLast((message) => message.code !== null)?.code ?? null;
        const linked = code !== null;
        const result = { messages, code, contact_asked: asked, contact_shared: shared };
        resolve({ ...result, ...(linked ? { linked: true as const } : {}) });
      };
      const finishWhenQuiet = (ms: number) => {
        last += 1;
        const own = last;
        timers.after(ms, () => {
          if (own === last) finish();
        });
      };
      const stop = chats.listen(e164, (message) => {
        heard.push(message);
        if (message.asksContact && !asked) {
          asked = true;
          if (contact !== null) {
            shared = true;
            last += 1;
            void shareContact(e164, contact);
            return;
          }
        }
        const done = message.code !== null || (asked && !shared);
        finishWhenQuiet(done ? afterCodeMs : patience.quietMs);
      });
      timers.after(patience.boundMs, finish);
      void begin();
    });

  return {
    /**
     * Opens a deep link as the phone's owner and goes through the conversation that follows.
     * @throws Refusal 400 when the link is not one of our bot
     */
    start: (
      e164: string,
      given: { url: unknown; contact?: Contact },
      patience: Partial<Patience> = {},
    ): Promise<StartResult> => {
      const payload = readLink(given.url, deps.options.botUsername);
      return converse(e164, given.contact, { ...standardPatience, ...patience }, async () => {
        await unblock(e164);
        await say(e164, payload ? `/start ${payload}` : '/start');
      });
    },
    /** Writes to the bot. Resolves when the update was taken. */
    say,
    /** Shares a card without being asked. Resolves when the update was taken. */
    shareContact,
    /** Blocks the bot: sends fail with 403, and my_chat_member tells so. */
    block: (e164: string): Promise<boolean> => {
      chats.setBlocked(e164, true);
      return member(e164, 'member', 'kicked');
    },
    unblock,
    /** The last update of the chat once more, under the same update_id. */
    repeat: (e164: string): Promise<boolean> => updates.repeat(chatIdOf(e164)),
  };
};
