// A Telegram update: Start redeems a link, a shared contact proves the phone, and then a fresh code may follow.

import type { AccountStore } from '../accounts/store.ts';
import type { Quotes } from '../billing/quote.ts';
import type { ChannelResult } from '../channels/channel.ts';
import type { TelegramChannel } from '../channels/telegram.ts';
import type { Broker } from '../infra/queue/broker.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import { type TelegramUpdate, telegramSend } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { maskPhone, phoneFacts } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { proofLifeMs, provesPhone, wantsFreshCode } from '../links/rules.ts';
import type { LinkStore, Redeemed } from '../links/store.ts';
import type { Announcer } from '../messages/announce.ts';
import { linkedEvent } from '../messages/events.ts';
import type { Message } from '../messages/rules.ts';
import { toWire } from '../messages/wire.ts';
import { lateMs, newCode } from './rules.ts';
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

type Opened = Redeemed & {
  hash: string;
  chatId: number;
  language: string | null;
  /** Whether the job may come again. */
  mayRepeat: boolean;
};

/** What became of the last thing the bot said; undefined when nothing needs to be said again. */
type Said = ChannelResult | undefined;

/** Certainly not said, and for a reason that passes. */
const isPassing = (said: Said): said is Extract<ChannelResult, { kind: 'refused' }> =>
  said?.kind === 'refused' && (said.refusal === 'retry' || said.refusal === 'throttle');

type Update = TelegramUpdate & { mayRepeat: boolean };

/** The message that a fresh code will be, or undefined when none is wanted or may be sent. */
const freshMessage = async (
  deps: RedeemDeps,
  { link, freshId }: Opened,
): Promise<Message | undefined> => {
  const { accountId, mode, phone, requestId } = link;
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  const [failed, sent] = await Promise.all([
    deps.links.lastAttempt(recipient),
    deps.live.originOfLiveCode(recipient),
  ]);
  // What was asked for last counts: a code that went out after the failure is the one that is wanted.
  const last = (failed?.at ?? 0) > (sent?.at ?? 0) ? failed : sent;
  if (!wantsFreshCode(last?.origin)) return undefined;
  const account = await deps.accounts.find(accountId);
  if (account?.status !== 'active') return undefined;
  const { country } = phoneFacts(phone);
  try {
    const asked = { account, mode, country, holdId: freshId, shared: false, waitsMs: lateMs };
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
): Promise<Said> => {
  const { link, chatId, hash, language } = opened;
  const { accountId, mode, phone } = link;
  const at = deps.clock.now();
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  await deps.links.link(link, recipient, { chatId, proof, at });
  const message = await freshMessage(deps, opened);
  const text = texts(language).linked(message !== undefined);
  const said = await deps.telegram.closeKeyboard(chatId, text);
  // The code would meet the same throttle: both wait.
  if (opened.mayRepeat && isPassing(said)) return said;
  if (message) await sendFresh(deps, message);
  await deps.announcer.announce(linkedEvent({ accountId, mode, phone, at, linkId: hash }));
  await deps.links.forgetAttempt(recipient);
  await deps.links.finish(hash, chatId);
  return undefined;
};

const open = async (
  deps: RedeemDeps,
  update: Update,
  hash: string | null,
): Promise<Opened | undefined> => {
  const { chat_id: chatId, language, mayRepeat } = update;
  const redeemed = hash === null ? undefined : await deps.links.redeem(hash, chatId);
  return redeemed && hash !== null ? { ...redeemed, hash, chatId, language, mayRepeat } : undefined;
};

const onStart = async (deps: RedeemDeps, update: Update): Promise<Said> => {
  const { chat_id: chatId, token_hash: hash, language } = update;
  const say = texts(language);
  const opened = await open(deps, update, hash);
  if (!opened) return deps.telegram.say(chatId, hash === null ? say.welcome : say.linkGone);
  const { link, done: finished, leftMs } = opened;
  if (finished) return deps.telegram.say(chatId, say.alreadyLinked);
  if (deps.proof === 'tap') return complete(deps, opened, 'tap');
  const since = deps.clock.now() - proofLifeMs;
  if (await deps.links.hasProof(chatId, link.phone, since))
    return complete(deps, opened, 'contact');
  await deps.links.rememberChat(chatId, opened.hash, leftMs);
  const asked = say.askContact(maskPhone(link.phone));
  return deps.telegram.askForContact(chatId, asked, say.shareButton);
};

const onContact = async (deps: RedeemDeps, update: Update): Promise<Said> => {
  const { chat_id: chatId, user_id: userId, contact, language } = update;
  const say = texts(language);
  const opened = await open(deps, update, await deps.links.pendingOf(chatId));
  if (!opened || opened.done) return deps.telegram.closeKeyboard(chatId, say.linkGone);
  const shared = contact && {
    phone: contact.phone,
    userId: contact.user_id,
    forwarded: contact.forwarded,
  };
  if (shared && provesPhone(shared, userId, opened.link.phone)) {
    await deps.links.saveProof(chatId, opened.link.phone, deps.clock.now());
    return complete(deps, opened, 'contact');
  }
  deps.log.info({ request_id: opened.link.requestId }, 'a foreign contact was shared for a link');
  return deps.telegram.say(chatId, say.wrongContact(maskPhone(opened.link.phone)));
};

/** The recipient blocked the bot: no chat of theirs is linked any more. */
const onBlocked = async (deps: RedeemDeps, chatId: number): Promise<void> => {
  for (const recipient of await deps.links.recipientsOf(chatId)) {
    const { accountId, mode, phone } = recipient;
    await deps.links.unlink(recipient, deps.recipients.ofRecipient(accountId, mode, phone));
  }
};

const reactTo = async (deps: RedeemDeps, update: Update): Promise<Said> => {
  switch (update.kind) {
    case 'start':
      return onStart(deps, update);
    case 'contact':
      return onContact(deps, update);
    case 'blocked':
      await onBlocked(deps, update.chat_id);
      return undefined;
    case 'other':
      return deps.telegram.say(update.chat_id, texts(update.language).welcome);
    default:
      return undefined;
  }
};

/**
 * Handles the job telegram.update. A repeated update does the same again and sends no second code; what Telegram was
 * too busy to take is said again when it asks to.
 */
export const handleTelegramUpdate = async (
  deps: RedeemDeps,
  update: TelegramUpdate,
  meta: Pick<Meta, 'lastAttempt'>,
): Promise<JobOutcome> => {
  const said = await reactTo(deps, { ...update, mayRepeat: !meta.lastAttempt });
  if (meta.lastAttempt || !isPassing(said)) return done;
  const { code, retryAfterSeconds: afterSeconds = 1 } = said;
  return { kind: 'retry', reason: `telegram_${code}`, afterSeconds };
};
