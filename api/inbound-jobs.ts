// From what providers say to the jobs it becomes: pure, and whatever comes out fits the job's own schema.
import type { ParsedUpdate } from '../lib/channels/telegram-webhook.ts';
import {
  type AccountNews,
  readNews,
  readReceipts,
  type WhatsappReceipt,
} from '../lib/channels/whatsapp-webhook.ts';
import type { Receipt, StatusJob, TelegramUpdate, WhatsappNews } from '../lib/jobs.ts';
import { isId } from '../lib/kernel/ids.ts';
import { tokenHash } from '../lib/links/rules.ts';

const echoPattern = /^([^.]{36})\.([0-9a-f]{32})$/;

/**
 * The echo of a message of ours is its id and its recipient's key. Others choose theirs as they like, and one entry
 * that does not fit would take the whole job with it.
 */
const toReceipt = ({ echo, status, at, errorCode }: WhatsappReceipt): Receipt | undefined => {
  const [, id = '', recipient = ''] = echoPattern.exec(echo) ?? [];
  if (!isId(id)) return undefined;
  return { message_id: id, recipient_key: recipient, status, at, error_code: errorCode };
};

const toNews = ({ wabaId, banState, ...news }: AccountNews): WhatsappNews => ({
  ...news,
  waba_id: wabaId,
  ban_state: banState,
});

/** The jobs of a webhook body of WhatsApp; receipts and news apart, so that trouble with one does not hold up the other. */
export const statusJobs = (body: Buffer, now: number): StatusJob[] => {
  const receipts = (readReceipts(body) ?? [])
    .map(toReceipt)
    .filter((receipt) => receipt !== undefined);
  const news = readNews(body, now).map(toNews);
  return [
    ...(receipts.length > 0 ? [{ receipts, due: [] }] : []),
    ...(news.length > 0 ? [{ receipts: [], due: [], news }] : []),
  ];
};

/** The job of an update of Telegram. */
export const updateJob = (update: ParsedUpdate): TelegramUpdate => ({
  update_id: update.updateId,
  chat_id: update.chatId,
  user_id: update.userId,
  kind: update.kind,
  token_hash: update.startToken === null ? null : tokenHash(update.startToken),
  contact: update.contact && {
    phone: update.contact.phone,
    user_id: update.contact.userId,
    forwarded: update.contact.forwarded,
  },
  language: update.language,
});
