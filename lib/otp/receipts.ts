// WhatsApp's receipts: what a later word from the provider changes, and the fallback it may set off.
import { classifyWhatsappError } from '../channels/whatsapp-errors.ts';
import type { Outcome as JobOutcome } from '../infra/queue/message.ts';
import type { Receipt, StatusJob } from '../jobs.ts';
import { messageEvent } from '../messages/events.ts';
import { type Facts, type Message, noFacts } from '../messages/rules.ts';
import type { ResolveSender } from '../sender/resolve.ts';
import { announceAccepted, type DeliveryDeps, moveOn, tell } from './delivery.ts';
import { handleDue } from './due.ts';
import type { ReceiptEffect } from './live-message.ts';
import { failureOf, isUnderway, triedBefore } from './rules.ts';

export type ReceiptDeps = DeliveryDeps & {
  resolveSender: ResolveSender;
  /** How long a caller waits for the first receipt. */
  reachabilityWindowMs: number;
};

/** Not on WhatsApp, has not accepted its terms, or runs too old a client. */
const undeliverable = 131026;

/** How long a caller in the reachability window still waits for the fallback. */
const fallbackPatienceMs = 5_000;

type Known = Pick<ReceiptEffect, 'acceptedAt' | 'expiresAt' | 'channel'>;

/** The provider's clock has whole seconds and is not ours: nothing arrives before it was accepted. */
const arrival = (receipt: Receipt, { acceptedAt, expiresAt, channel }: Known) => {
  const at = Math.max(receipt.at, acceptedAt ?? 0);
  const readAt = receipt.status === 'read' ? at : null;
  const known = { channel: channel ?? 'whatsapp', acceptedAt, expiresAt } as const;
  const facts: Facts = { ...noFacts, ...known, deliveredAt: at, readAt };
  return { at, facts };
};

/**
 * The message arrived. One that had failed is taken by its channel only now, as far as we know: that is said, and
 * charged where it is what is paid for. (A call without an answer is gone on with by its own job.)
 */
const recordArrival = async (
  deps: DeliveryDeps,
  message: Message,
  { at, facts, revived }: { at: number; facts: Facts; revived: boolean },
): Promise<void> => {
  await deps.messages.mergeLater(message, facts);
  if (revived) await announceAccepted(deps, message, facts);
  await deps.announcer.announce(messageEvent('otp.delivered', message, at, facts));
};

const onGood = async (
  deps: DeliveryDeps,
  receipt: Receipt,
  effect: ReceiptEffect,
): Promise<void> => {
  const { message, waiter, acceptedAt, expiresAt } = effect;
  if (!message) return;
  if (effect.held && acceptedAt !== null && expiresAt !== null) {
    tell(deps, waiter, {
      kind: 'accepted',
      channel: 'whatsapp',
      acceptedAt,
      expiresAt,
      hold: false,
    });
  }
  if (receipt.status === 'sent') return;
  if (!effect.knownReachable) {
    await deps.live.learnReachable(deps.recipients.ofPhone(message.phone), true);
  }
  const { at, facts } = arrival(receipt, effect);
  await recordArrival(deps, message, { at, facts, revived: effect.before === 'failed' });
};

/** Only for the class broken does it matter whose number it was. */
const isOwn = async (deps: ReceiptDeps, refusal: string, accountId: string): Promise<boolean> =>
  refusal === 'broken' && (await deps.resolveSender(accountId))?.shared === false;

const onFailed = async (
  deps: ReceiptDeps,
  receipt: Receipt,
  effect: ReceiptEffect,
): Promise<void> => {
  const { message, sealedCode, waiter, acceptedAt } = effect;
  if (!message) return;
  const now = deps.clock.now();
  // Nobody says that the window has ended without a receipt: its length does.
  const held = effect.held && now < (acceptedAt ?? 0) + deps.reachabilityWindowMs;
  if (receipt.error_code === undeliverable) {
    await deps.live.learnReachable(deps.recipients.ofPhone(message.phone), false);
  }
  // Verified, or already on its way over the other channel: nothing is left to do. A message that failed is gone
  // through once more, since the run that failed it may have died before it said so.
  if (effect.verified || isUnderway(effect.telegram) || !sealedCode) return;
  const delivery = {
    message,
    ref: { recipient: receipt.recipient_key, id: receipt.message_id },
    sealedCode,
    ...triedBefore(effect),
    legs: [],
    reachable: null,
    late: !held,
    waiter,
    deadlineMs: held ? now + fallbackPatienceMs : undefined,
  };
  const { error_code: code } = receipt;
  const refusal = code === null ? 'unreachable' : classifyWhatsappError({ code });
  const own = await isOwn(deps, refusal, message.accountId);
  await moveOn(deps, delivery, { channel: 'whatsapp', ...failureOf(refusal, own) });
};

/** A receipt for a message that Redis has forgotten: it is old, and only its row can still change. */
const onForgotten = async (deps: DeliveryDeps, receipt: Receipt): Promise<void> => {
  if (receipt.status !== 'delivered' && receipt.status !== 'read') return;
  const [stored] = await deps.messages.findAll([receipt.message_id]);
  if (!stored || stored.facts.deliveredAt !== null) return;
  const revived = stored.facts.acceptedAt === null;
  const { at, facts } = arrival(receipt, stored.facts);
  // Its code is gone with Redis: what is taken only now has ended as well.
  const known = revived ? { ...facts, acceptedAt: at, expiresAt: at } : facts;
  await recordArrival(deps, stored.message, { at, facts: known, revived });
};

const handleReceipt = async (deps: ReceiptDeps, receipt: Receipt): Promise<void> => {
  const ref = { recipient: receipt.recipient_key, id: receipt.message_id };
  const effect = await deps.live.receipt(ref, receipt.status, receipt.at, deps.clock.now());
  if (!effect) return onForgotten(deps, receipt);
  return receipt.status === 'failed'
    ? onFailed(deps, receipt, effect)
    : onGood(deps, receipt, effect);
};

const rank = { sent: 0, failed: 1, delivered: 2, read: 3 } as const;

/** Of several receipts for one message in one job the strongest says all that the others say. */
const strongest = (receipts: readonly Receipt[]): Receipt[] => {
  const byMessage = new Map<string, Receipt>();
  for (const receipt of receipts) {
    const known = byMessage.get(receipt.message_id);
    if (!known || rank[receipt.status] > rank[known.status])
      byMessage.set(receipt.message_id, receipt);
  }
  return [...byMessage.values()];
};

/** Handles the job whatsapp.status: receipts of some webhook calls, or messages whose time has come. */
export const handleWhatsappStatus = async (
  deps: ReceiptDeps,
  job: StatusJob,
): Promise<JobOutcome> => {
  await Promise.all(strongest(job.receipts).map((receipt) => handleReceipt(deps, receipt)));
  await handleDue(deps, job.due);
  return { kind: 'done' };
};
