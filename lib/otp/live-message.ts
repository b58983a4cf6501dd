// What live messages and codes look like to those who use them, read off the answers of Redis.
import type { ChannelName, Facts, FailureReason, Message } from '../messages/rules.ts';

/** Where the process that waits for a send is reached. */
export type Waiter = { replyTo: string; correlationId: string };

/** What a live message shows; without its snapshot it was given up before a worker saw it. */
export type LiveMessage = {
  snapshot: Message | undefined;
  whatsapp: string | undefined;
  telegram: string | undefined;
  abandoned: boolean;
  sealedCode: string | undefined;
  /** Why the leg failed. */
  lostWhatsapp: FailureReason | null;
  lostTelegram: FailureReason | null;
  facts: Facts;
};

/** A message and the recipient it is for: where its keys are. */
export type LiveRef = { recipient: string; id: string };

export type CodeMac = { id: string; mac: string };

export type ReceiptEffect = {
  before: string;
  /** Somebody waits for the first receipt of this message. */
  held: boolean;
  /** WhatsApp was known to reach the phone before. */
  knownReachable: boolean;
  message: Message | undefined;
  sealedCode: string | undefined;
  waiter: Waiter | undefined;
  telegram: string | undefined;
  acceptedAt: number | null;
  expiresAt: number | null;
  verified: boolean;
  channel: ChannelName | null;
  lostTelegram: FailureReason | null;
};

export type Verified = {
  kind: 'verified';
  messageId: string;
  message: Message | undefined;
  facts: Partial<Facts>;
};

export type Verdict =
  | { kind: 'blocked'; waitMs: number }
  | { kind: 'none' }
  | { kind: 'wrong'; remaining: number }
  | Verified;

/** A field of a reply. */
export type Text = string | null | undefined;

const numberOf = (value: Text): number | null => (value ? Number(value) : null);
/** A message as its snapshot has it. */
export const messageOf = (value: Text): Message | undefined =>
  value ? JSON.parse(value) : undefined;
const waiterOf = (to: Text, id: Text): Waiter | undefined =>
  to && id ? { replyTo: to, correlationId: id } : undefined;

/** Reads a live message off its hash. */
export const toLive = (hash: Record<string, string>): LiveMessage => ({
  snapshot: messageOf(hash.snap),
  whatsapp: hash.whatsapp,
  telegram: hash.telegram,
  abandoned: hash.ab !== undefined,
  sealedCode: hash.sealed,
  lostWhatsapp: (hash.lost_whatsapp as FailureReason | undefined) ?? null,
  lostTelegram: (hash.lost_telegram as FailureReason | undefined) ?? null,
  facts: {
    channel: (hash.channel as ChannelName | undefined) ?? null,
    acceptedAt: numberOf(hash.acc),
    expiresAt: numberOf(hash.exp),
    deliveredAt: numberOf(hash.del),
    readAt: numberOf(hash.read),
    verifiedAt: numberOf(hash.ver),
    failedAt: numberOf(hash.fail),
    failureReason: (hash.why as FailureReason | undefined) ?? null,
    expiredAt: null,
  },
});

/** Reads what the script `receipt` answers. */
export const toReceiptEffect = (reply: Text[]): ReceiptEffect => {
  const [before, held, known, snap, sealed, to, id, telegram, acc, exp, ver, channel, lost] = reply;
  return {
    before: before ?? '',
    held: held === '1',
    knownReachable: known === '1',
    message: messageOf(snap),
    sealedCode: sealed ?? undefined,
    waiter: waiterOf(to, id),
    telegram: telegram ?? undefined,
    acceptedAt: numberOf(acc),
    expiresAt: numberOf(exp),
    verified: Boolean(ver),
    channel: (channel as ChannelName | null) ?? null,
    lostTelegram: (lost as FailureReason | null) ?? null,
  };
};

/** The message that was verified at `now` (ms): its id, then what its hash had. */
export const toVerified = (fields: Text[], now: number): Verified => {
  const [id, snap, acc, exp, del, channel] = fields;
  return {
    kind: 'verified',
    messageId: String(id),
    message: messageOf(snap),
    facts: {
      channel: (channel as ChannelName | null) ?? null,
      acceptedAt: numberOf(acc),
      expiresAt: numberOf(exp),
      deliveredAt: numberOf(del),
      verifiedAt: now,
    },
  };
};

/** Reads what the script `verify` answers to a code that came at `now` (ms). */
export const toVerdict = (reply: (string | number | null)[], now: number): Verdict => {
  const [kind, first, ...rest] = reply;
  if (kind === 'blocked') return { kind, waitMs: Number(first) };
  if (kind === 'wrong') return { kind, remaining: Number(first) };
  if (kind !== 'verified') return { kind: 'none' };
  return toVerified([String(first), ...(rest as Text[])], now);
};
