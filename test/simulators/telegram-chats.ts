// Chats of the simulated Telegram: one private chat per phone, the bot's messages in it and who waits for them.
import { randomInt } from 'node:crypto';
import type { Clock } from './clock.ts';
import type { JsonObject } from './http.ts';

/** A message of the bot as its reader sees it. */
export type BotMessage = {
  messageId: number;
  text: string;
  code: string | null;
  /** Whether it shows the button that shares the own contact. */
  asksContact: boolean;
  removesKeyboard: boolean;
  atMs: number;
};

// Leaves even the longest number an id of 49 bits, and the shortest one of at most 52.
const idBase = 1.1e15;
const checkOf = (digits: string): number => [...digits].reduce((sum, d) => sum + Number(d), 0) % 4;

/**
 * The user and chat id of a phone: more than 32 bits, never the number itself, and the same after a
 * restart, so that chats linked in an earlier run of the simulators go on working.
 */
export const chatIdOf = (e164: string): number => {
  const digits = e164.slice(1);
  return (idBase - Number(digits)) * 4 + checkOf(digits);
};

/** The phone of a chat id; undefined when no phone has it. */
export const phoneOfChat = (chatId: number): string | undefined => {
  const digits = String(idBase - Math.floor(chatId / 4));
  const sound = /^[1-9]\d{6,14}$/.test(digits) && checkOf(digits) === ((chatId % 4) + 4) % 4;
  return sound ? `+${digits}` : undefined;
};

const names = ['Sam', 'Noor', 'Ada', 'Luca', 'Mina', 'Omar', 'Ines', 'Theo'];

/** The user behind a phone, as updates show it. */
export const userOf = (e164: string): JsonObject => ({
  id: chatIdOf(e164),
  is_bot: false,
  first_name: names[Number(e164.slice(-1)) % names.length],
  language_code: 'en',
});

/** The private chat of a phone's owner with the bot. */
export const chatOf = (e164: string): JsonObject => {
  const { id, first_name: firstName } = userOf(e164);
  return { id, type: 'private', first_name: firstName };
};

export type Chats = ReturnType<typeof createChats>;

/** Creates the chats. */
export const createChats = (clock: Clock) => {
  const listeners = new Map<string, Set<(message: BotMessage) => void>>();
  const blocked = new Set<string>();
  let messageId = randomInt(1, 1_000_000_000);

  return {
    /** A new message id; one row of numbers for all chats keeps them unique. */
    nextMessageId: (): number => {
      messageId += 1;
      return messageId;
    },
    nowSeconds: (): number => Math.floor(clock.now() / 1000),
    /** Tells who waits that the bot wrote. */
    tell: (e164: string, message: BotMessage): void => {
      for (const listener of listeners.get(e164) ?? []) listener(message);
    },
    /** Calls `listener` with every message of the bot until the returned function is called. */
    listen: (e164: string, listener: (message: BotMessage) => void): (() => void) => {
      const own = listeners.get(e164) ?? new Set();
      own.add(listener);
      listeners.set(e164, own);
      return () => {
        own.delete(listener);
        if (own.size === 0) listeners.delete(e164);
      };
    },
    isBlocked: (e164: string): boolean => blocked.has(e164),
    setBlocked: (e164: string, value: boolean): void => {
      if (value) blocked.add(e164);
      else blocked.delete(e164);
    },
    reset: (): void => {
      blocked.clear();
    },
  };
};
