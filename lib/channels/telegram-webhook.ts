// Telegram's updates: what of them matters here (reference 02 section 9.3 and 9.4).
import { child, parseObject } from './channel.ts';

type Json = Record<string, unknown>;

export type ParsedUpdate = {
  updateId: number;
  chatId: number;
  userId: number;
  kind: 'start' | 'contact' | 'blocked' | 'unblocked' | 'other';
  /** The payload behind /start. */
  startToken: string | null;
  contact: { phone: string; userId: number | null; forwarded: boolean } | null;
  language: string | null;
};

const integerOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? (value as number) : undefined;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const startPattern = /^\/start(?: ([A-Za-z0-9_-]{1,64}))?$/;

const readContact = (message: Json): ParsedUpdate['contact'] => {
  const contact = child(message, 'contact');
  if (!contact) return null;
  const digits = textOf(contact.phone_number).replace(/\D/g, '');
  return {
    phone: `+${digits}`,
    userId: integerOf(contact.user_id) ?? null,
    forwarded: 'forward_origin' in message || 'forward_from' in message,
  };
};

const kindOf = (start: RegExpMatchArray | null, contact: unknown): ParsedUpdate['kind'] => {
  if (start) return 'start';
  return contact ? 'contact' : 'other';
};

const readMessage = (updateId: number, message: Json): ParsedUpdate | undefined => {
  const from = child(message, 'from');
  const chat = child(message, 'chat');
  const chatId = integerOf(chat?.id);
  const userId = integerOf(from?.id);
  if (chatId === undefined || userId === undefined) return undefined;
  if (chat?.type !== 'private' || from?.is_bot === true) return undefined;
  const start = textOf(message.text).match(startPattern);
  const contact = readContact(message);
  return {
    updateId,
    chatId,
    userId,
    kind: kindOf(start, contact),
    startToken: start?.[1] ?? null,
    contact,
    language: textOf(from?.language_code).slice(0, 8) || null,
  };
};

const readMembership = (updateId: number, change: Json): ParsedUpdate | undefined => {
  const chatId = integerOf(child(change, 'chat')?.id);
  const userId = integerOf(child(change, 'from')?.id);
  if (chatId === undefined || userId === undefined) return undefined;
  const status = child(change, 'new_chat_member')?.status;
  const kind = status === 'kicked' || status === 'left' ? 'blocked' : 'unblocked';
  return { updateId, chatId, userId, kind, startToken: null, contact: null, language: null };
};

/** What an update says; undefined for updates that are no business of ours (they are answered 200 all the same). */
export const readUpdate = (body: Buffer): ParsedUpdate | undefined => {
  const root = parseObject(body.toString('utf8'));
  const updateId = integerOf(root?.update_id);
  if (!root || updateId === undefined) return undefined;
  const message = child(root, 'message');
  if (message) return readMessage(updateId, message);
  const change = child(root, 'my_chat_member');
  return change ? readMembership(updateId, change) : undefined;
};
