// Messages whose time has come: no receipt within the template's lifetime, or the end of the code's life.
import { messageEvent } from '../messages/events.ts';
import type { Facts } from '../messages/rules.ts';
import type { StoredMessage } from '../messages/store.ts';
import { type DeliveryDeps, moveOn } from './delivery.ts';
import type { LiveMessage } from './live-message.ts';
import { isUnderway, triedBefore } from './rules.ts';

const verifiedAll = async (
  deps: DeliveryDeps,
  { message }: StoredMessage,
  facts: Facts,
): Promise<void> => {
  // The process that verified it did not live to say so.
  await deps.announcer.announce(
    messageEvent('otp.verified', message, facts.verifiedAt ?? deps.clock.now(), facts),
  );
};

const expire = async (deps: DeliveryDeps, { message, facts }: StoredMessage): Promise<void> => {
  const at = facts.expiresAt ?? deps.clock.now();
  const expired: Facts = { ...facts, expiredAt: at };
  await deps.messages.merge(message, expired);
  await deps.announcer.announce(messageEvent('otp.expired', message, at, expired));
};

/** WhatsApp dropped it: the same code goes out over Telegram, or the message failed but its code stays valid. */
const undelivered = async (
  deps: DeliveryDeps,
  { message }: StoredMessage,
  live: LiveMessage | undefined,
): Promise<void> => {
  const sealedCode = live?.sealedCode;
  if (!sealedCode || isUnderway(live.telegram)) return;
  const { accountId, mode, phone, id } = message;
  const delivery = {
    message,
    ref: { recipient: deps.recipients.ofRecipient(accountId, mode, phone), id },
    sealedCode,
    ...triedBefore(live),
    legs: [],
    reachable: null,
    late: true,
    waiter: undefined,
    deadlineMs: undefined,
  };
  await moveOn(deps, delivery, { channel: 'whatsapp', reason: 'not_delivered', voidCode: false });
};

/** The run that changed the state may have died before it said so; whoever heard it knows the event by its id. */
const announceAgain = async (
  deps: DeliveryDeps,
  { message, facts, status }: StoredMessage,
): Promise<void> => {
  if (status === 'expired' && facts.expiredAt !== null) {
    await deps.announcer.announce(messageEvent('otp.expired', message, facts.expiredAt, facts));
  }
  if (status === 'failed' && facts.failedAt !== null) {
    const failed = { ...facts, channel: null };
    await deps.announcer.announce(messageEvent('otp.failed', message, facts.failedAt, failed));
  }
};

/** Answers whether it is a failed one whose code is over: nobody has to look at it again. */
const handleOne = async (deps: DeliveryDeps, stored: StoredMessage): Promise<boolean> => {
  const { status, facts } = stored;
  if (status === 'verified' || status === 'expired') {
    await announceAgain(deps, stored);
    return false;
  }
  const { accountId, mode, phone, id } = stored.message;
  const ref = { recipient: deps.recipients.ofRecipient(accountId, mode, phone), id };
  const live = await deps.live.find(ref);
  if (live && live.facts.verifiedAt !== null) {
    await verifiedAll(deps, stored, live.facts);
    return false;
  }
  const over = (facts.expiresAt ?? 0) <= deps.clock.now();
  if (status === 'failed') {
    // What a receipt failed was told by that receipt's own job.
    if (!over || facts.failureReason === 'not_delivered') await announceAgain(deps, stored);
    return over;
  }
  await (over ? expire(deps, stored) : undelivered(deps, stored, live));
  return false;
};

/** Handles the due part of the job whatsapp.status; a second run finds what the first did and announces it again. */
export const handleDue = async (deps: DeliveryDeps, ids: string[]): Promise<void> => {
  if (ids.length === 0) return;
  const stored = await deps.messages.findAll(ids);
  const over = await Promise.all(stored.map((one) => handleOne(deps, one)));
  await deps.messages.settleFailed(
    stored.flatMap(({ message }, index) => (over[index] ? [message.id] : [])),
  );
};
