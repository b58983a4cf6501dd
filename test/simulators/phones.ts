// The simulated phones: what arrived on each, what each was told to do, and who watches.
import { type Behaviour, standardBehaviour } from './behaviours.ts';
import type { Clock } from './clock.ts';
import { Refusal } from './http.ts';

export type Channel = 'whatsapp' | 'telegram';

/** One bubble on a phone. `by` is the phone's owner or the service (business or bot). */
export type Bubble = {
  seq: number;
  channel: Channel;
  by: 'service' | 'owner';
  code: string | null;
  text: string;
  atMs: number;
  /** The WhatsApp number it came from. */
  phoneNumberId?: string;
  /** Telegram's message_id, so that a deleted message leaves the phone. */
  telegramId?: number;
};

/** The last WhatsApp message a provider call was accepted for; statuses can be sent for it by hand. */
export type SentMessage = {
  wamid: string;
  phone: string;
  phoneNumberId: string;
  echo: string | undefined;
  category: string;
};

export type Phone = {
  e164: string;
  bubbles: Bubble[];
  behaviour: Partial<Behaviour> | undefined;
  lastSent: SentMessage | undefined;
};

export type PhoneEvent =
  | { kind: 'bubble'; phone: string; bubble: Bubble }
  | { kind: 'deleted'; phone: string; seq: number }
  | { kind: 'behaviour'; phone: string }
  | { kind: 'reset' };

const maxPhones = 250_000;
const maxBubbles = 50;
const maxRecent = 60;

/** E.164 with or without the plus. @throws Refusal 400 */
export const parsePhone = (text: string): string => {
  const match = /^\+?([1-9]\d{6,14})$/.exec(text.trim());
  if (!match) throw new Refusal(400, 'The phone number must be E.164, for example +14155550123.');
  return `+${match[1]}`;
};

export type Phones = ReturnType<typeof createPhones>;

/** Creates the phones. All are there from the start: the first mention of a number opens it. */
export const createPhones = (clock: Clock) => {
  const phones = new Map<string, Phone>();
  const recent = new Set<string>();
  const watchers = new Set<(event: PhoneEvent) => void>();
  let standard: Behaviour = standardBehaviour;
  let seq = 0;

  const tell = (event: PhoneEvent) => {
    for (const watcher of watchers) watcher(event);
  };

  // The oldest phone makes room, unless somebody gave it a behaviour.
  const makeRoom = () => {
    for (let tries = 0; phones.size >= maxPhones && tries < 1000; tries += 1) {
      const [oldest] = phones.values();
      if (!oldest) return;
      phones.delete(oldest.e164);
      if (oldest.behaviour) phones.set(oldest.e164, oldest);
    }
  };

  const open = (e164: string): Phone => {
    const known = phones.get(e164);
    if (known) return known;
    makeRoom();
    const phone = { e164, bubbles: [], behaviour: undefined, lastSent: undefined };
    phones.set(e164, phone);
    return phone;
  };

  const touch = (e164: string) => {
    recent.delete(e164);
    recent.add(e164);
    if (recent.size <= maxRecent) return;
    const [oldest] = recent;
    if (oldest !== undefined) recent.delete(oldest);
  };

  return {
    open,
    /** Numbers in use lately, newest first. */
    recent: (): string[] => [...recent].reverse(),
    /** Puts a bubble on a phone. */
    add: (e164: string, bubble: Omit<Bubble, 'seq' | 'atMs'>): Bubble => {
      const phone = open(e164);
      seq += 1;
      const kept: Bubble = { ...bubble, seq, atMs: clock.now() };
      if (phone.bubbles.length >= maxBubbles) phone.bubbles.shift();
      phone.bubbles.push(kept);
      touch(e164);
      if (watchers.size > 0) tell({ kind: 'bubble', phone: e164, bubble: kept });
      return kept;
    },
    /** Takes a Telegram message off the phone; false when it is not there. */
    remove: (e164: string, telegramId: number): boolean => {
      const { bubbles } = open(e164);
      const index = bubbles.findIndex((bubble) => bubble.telegramId === telegramId);
      const [gone] = index < 0 ? [] : bubbles.splice(index, 1);
      if (gone) tell({ kind: 'deleted', phone: e164, seq: gone.seq });
      return gone !== undefined;
    },
    /** Every bubble of a phone, oldest first. */
    bubbles: (e164: string): readonly Bubble[] => phones.get(e164)?.bubbles ?? [],
    /** What a phone does now: its own settings over those of all phones. */
    behaviour: (e164: string): Behaviour => {
      const own = phones.get(e164)?.behaviour;
      return own ? { ...standard, ...own } : standard;
    },
    /** Changes what a phone does. */
    behave: (e164: string, change: Partial<Behaviour>): void => {
      const phone = open(e164);
      phone.behaviour = { ...phone.behaviour, ...change };
      touch(e164);
      tell({ kind: 'behaviour', phone: e164 });
    },
    /** Changes what all phones do that were not told otherwise. */
    behaveAll: (change: Partial<Behaviour>): Behaviour => {
      standard = { ...standard, ...change };
      return standard;
    },
    /** Calls `watcher` at every change until the returned function is called. */
    watch: (watcher: (event: PhoneEvent) => void): (() => void) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    reset: (): void => {
      phones.clear();
      recent.clear();
      standard = standardBehaviour;
      tell({ kind: 'reset' });
    },
  };
};
