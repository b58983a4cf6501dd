// What the providers saw: calls by outcome, and how often each message was accepted and delivered.

export type MessageCount = { accepted: number; delivered: number };

export type Stats = {
  count(provider: 'whatsapp' | 'telegram' | 'turnstile', outcome: string): void;
  accepted(provider: 'whatsapp' | 'telegram', id: string): void;
  delivered(provider: 'whatsapp' | 'telegram', id: string): void;
  calls(): Record<string, Record<string, number>>;
  messages(): Iterable<[string, MessageCount]>;
  reset(): void;
};

export const createStats = (): Stats => {
  let calls: Record<string, Record<string, number>> = {};
  const messages = new Map<string, MessageCount>();

  const entry = (key: string): MessageCount => {
    const known = messages.get(key) ?? { accepted: 0, delivered: 0 };
    messages.set(key, known);
    return known;
  };

  return {
    count: (provider, outcome) => {
      const outcomes = calls[provider] ?? {};
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      calls[provider] = outcomes;
    },
    accepted: (provider, id) => {
      entry(`${provider} ${id}`).accepted++;
    },
    delivered: (provider, id) => {
      entry(`${provider} ${id}`).delivered++;
    },
    calls: () => calls,
    messages: () => messages,
    reset: () => {
      calls = {};
      messages.clear();
    },
  };
};
