// A Telegram update: Start redeems a link, a shared contact proves the phone, and then a fresh code may follow.

import type { AccountStore } from '../accounts/store.ts';
import type { Quotes } from '../billing/quote.ts';
import type { TelegramChannel } from '../channels/telegram.ts';
import type { Broker } from '../infra/queue/broker.ts';
import type { Outcome as JobOutcome } from '../infra/queue/message.ts';
import { type TelegramUpdate, telegramSend } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { maskPhone, phoneFacts } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { provesPhone, wantsFreshCode } from '../links/rules.ts';
import type { LinkStore, Redeemed } from '../links/store.ts';
import type { Announcer } from '../messages/announce.ts';
import { linkedEvent } from '../messages/events.ts';
import type { Message } from '../messages/rules.ts';
import { toWire } from '../messages/wire.ts';
import { newCode } from './rules.ts';
import { sealCode } from './sealed.ts';
import type { LiveStore } from './store.ts';
import { texts } from './telegram-texts.ts';

export type RedeemDeps = {
  accounts: AccountStore;
  announcer: Announcer;
  broker: Pick<Broker, 'publish'>;
  clock: Clock;
  links: LinkStore;
  live: LiveStore;
  log: Log;
  proof: 'contact' | 'tap';
  quotes: Pick<Quotes, 'send'>;
  recipients: RecipientKeys;
  sealer: Sealer;
  telegram: TelegramChannel;
};

const done: JobOutcome = { kind: 'done' };

type Opened = Redeemed & { hash: string; chatId: number; language: string | null };

/** The message that a fresh code will be, or undefined when none is wanted or may be sent. */
const freshMessage = async (
  deps: RedeemDeps,
  { link, freshId }: Opened,
): Promise<Message | undefined> => {
  const { accountId, mode, phone, requestId } = link;
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  const origin =
    (await deps.links.lastAttempt(recipient)) ?? (await deps.live.originOfLiveCode(recipient));
  if (!wantsFreshCode(origin)) return undefined;
  const account = await deps.accounts.find(accountId);
  if (account?.status !== 'active') return undefined;
  const { country } = phoneFacts(phone);
  try {
    const asked = { account, mode, country, holdId: freshId, shared: false };
    const quote = await deps.quotes.send(asked);
    const named = { id: freshId, accountId, mode, phone, country, requestId };
    return { ...named, origin: 'send', ...quote, idempotencyHash: null };
  } catch (error) {
    // No credit is the account's matter: the recipient is linked, and the next send will say what is wrong.
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
};

const sendFresh = async (deps: RedeemDeps, message: Message): Promise<void> => {
  const code = newCode(message.mode);
  await deps.broker.publish(
    telegramSend,
    {
      message: toWire(message),
      sealed_code: sealCode(deps.sealer, message.id, code),
      tried: ['whatsapp'],
      reason: 'not_on_channel',
      reachable: null,
      late: true,
    },
    { messageId: message.id, requestId: message.requestId },
  );
};

/** The phone is proven (or a tap is enough): remember the chat, send what is due, say so. Safe to run twice. */
const complete = async (
  deps: RedeemDeps,
  opened: Opened,
  proof: 'contact' | 'tap',
): Promise<void> => {
  const { link, chatId, hash, language } = opened;
  const { accountId, mode, phone } = link;
  const at = deps.clock.now();
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  if (proof === 'contact') await deps.links.saveProof(chatId, phone, at);
  await deps.links.link(link, recipient, { chatId, proof, at });
  const message = await freshMessage(deps, opened);
  const text = texts(language).linked(message !== undefined);
  await deps.telegram.closeKeyboard(chatId, text);
  if (message) await sendFresh(deps, message);
  await deps.announcer.announce(linkedEvent({ accountId, mode, phone, at, linkId: hash }));
  await deps.links.finish(hash, chatId);
};

const open = async (
  deps: RedeemDeps,
  update: TelegramUpdate,
  hash: string | null,
): Promise<Opened | undefined> => {
  const { chat_id: chatId, language } = update;
  const redeemed = hash === null ? undefined : await deps.links.redeem(hash, chatId);
  return redeemed && hash !== null ? { ...redeemed, hash, chatId, language } : undefined;
};

const onStart = async (deps: RedeemDeps, update: TelegramUpdate): Promise<void> => {
  const { chat_id: chatId, token_hash: hash, language } = update;
  const say = texts(language);
  const opened = await open(deps, update, hash);
  if (!opened) {
    await deps.telegram.say(chatId, hash === null ? say.welcome : say.linkGone);
    return;
  }
  const { link, done: finished, leftMs } = opened;
  if (finished) {
    await deps.telegram.say(chatId, say.alreadyLinked);
    return;
  }
  if (deps.proof === 'tap') return complete(deps, opened, 'tap');
  if (await deps.links.hasProof(chatId, link.phone)) return complete(deps, opened, 'contact');
  await deps.links.rememberChat(chatId, opened.hash, leftMs);
  await deps.telegram.askForContact(chatId, say.askContact(maskPhone(link.phone)), say.shareButton);
};

const onContact = async (deps: RedeemDeps, update: TelegramUpdate): Promise<void> => {
  const { chat_id: chatId, user_id: userId, contact, language } = update;
  const say = texts(language);
  const opened = await open(deps, update, await deps.links.pendingOf(chatId));
  if (!opened || opened.done) {
    await deps.telegram.closeKeyboard(chatId, say.linkGone);
    return;
  }
  const shared = contact && {
    phone: contact.phone,
    userId: contact.user_id,
    forwarded: contact.forwarded,
  };
  if (shared && provesPhone(shared, userId, opened.link.phone)) {
    return complete(deps, opened, 'contact');
  }
  deps.log.info({ request_id: opened.link.requestId }, 'a foreign contact was shared for a link');
  await deps.telegram.say(chatId, say.wrongContact(maskPhone(opened.link.phone)));
};

/** The recipient blocked the bot: no chat of theirs is linked any more. */
const onBlocked = async (deps: RedeemDeps, chatId: number): Promise<void> => {
  for (const recipient of await deps.links.recipientsOf(chatId)) {
    const { accountId, mode, phone } = recipient;
    await deps.links.unlink(recipient, deps.recipients.ofRecipient(accountId, mode, phone));
  }
};

/** Handles the job telegram.update. A repeated update does the same again and sends no second code. */
export const handleTelegramUpdate = async (
  deps: RedeemDeps,
  update: TelegramUpdate,
): Promise<JobOutcome> => {
  switch (update.kind) {
    case 'start':
      await onStart(deps, update);
      break;
    case 'contact':
      await onContact(deps, update);
      break;
    case 'blocked':
      await onBlocked(deps, update.chat_id);
      break;
    case 'other':
      await deps.telegram.say(update.chat_id, texts(update.language).welcome);
      break;
    default:
  }
  return done;
};
