// Counters of the simulators: calls by provider and outcome, and how often each message was accepted and delivered.

export type Provider = 'whatsapp' | 'whatsapp_management' | 'telegram' | 'turnstile' | 'stripe';

const maxMessages = 500_000;
const deliveredUnit = 0x10000;

/** Accepted and delivered of one id in one number: 200,000 ids cost little more than their text. */
type Counts = Map<string, number>;

const bump = (counts: Counts, id: string, by: number) => {
  const before = counts.get(id);
  if (before === undefined && counts.size >= maxMessages) {
    const [oldest] = counts.keys();
    if (oldest !== undefined) counts.delete(oldest);
  }
  counts.set(id, (before ?? 0) + by);
};

const byName = (counts: Map<string, number>) => Object.fromEntries([...counts].sort());

export type MessageCount = { accepted: number; delivered: number };

export type Stats = ReturnType<typeof createStats>;

/**
 * Creates empty counters. WhatsApp messages are counted by their biz_opaque_callback_data, Telegram
 * messages by `{e164}:{code}`, the only thing that names them there.
 */
export const createStats = (clock: { now(): number }) => {
  const outcomes = new Map<Provider, Map<string, number>>();
  const messages = { whatsapp: new Map() as Counts, telegram: new Map() as Counts };
  let since = clock.now();

  const unpack = (value = 0): MessageCount => ({
    accepted: value % deliveredUnit,
    delivered: Math.floor(value / deliveredUnit),
  });

  return {
    /** Counts one outcome of a provider. */
    note: (provider: Provider, outcome: string): void => {
      const counts = outcomes.get(provider) ?? new Map<string, number>();
      outcomes.set(provider, counts);
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    },
    /** Counts that a provider took a message. */
    accepted: (channel: 'whatsapp' | 'telegram', id: string | undefined): void => {
      if (id) bump(messages[channel], id, 1);
    },
    /** Counts that a message reached the phone. */
    delivered: (channel: 'whatsapp' | 'telegram', id: string | undefined): void => {
      if (id) bump(messages[channel], id, deliveredUnit);
    },
    /** How often one message was accepted and delivered. */
    message: (channel: 'whatsapp' | 'telegram', id: string): MessageCount =>
      unpack(messages[channel].get(id)),
    /** Every message of a channel that was accepted or delivered more than `over` times. */
    *messages(channel: 'whatsapp' | 'telegram', over = -1): Generator<[string, MessageCount]> {
      for (const [id, value] of messages[channel]) {
        const count = unpack(value);
        if (count.accepted > over || count.delivered > over) yield [id, count];
      }
    },
    /** The counters as GET /stats shows them. */
    summary: () => ({
      since: new Date(since).toISOString(),
      whatsapp: byName(outcomes.get('whatsapp') ?? new Map()),
      whatsapp_management: byName(outcomes.get('whatsapp_management') ?? new Map()),
      telegram: byName(outcomes.get('telegram') ?? new Map()),
      turnstile: byName(outcomes.get('turnstile') ?? new Map()),
      messages: { whatsapp: messages.whatsapp.size, telegram: messages.telegram.size },
    }),
    reset: (): void => {
      outcomes.clear();
      messages.whatsapp.clear();
      messages.telegram.clear();
      since = clock.now();
    },
  };
};
