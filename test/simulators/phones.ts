// The phones: what is on each, how each behaves, and who watches.
import { type Behaviour, defaultBehaviour } from './behaviours.ts';

export type PhoneMessage = {
  channel: 'whatsapp' | 'telegram';
  code: string | null;
  text: string;
  at: string;
};

export type Phone = {
  number: string;
  messages: PhoneMessage[];
  behaviour: Partial<Behaviour>;
};

export type PhoneEvent = { phone: string; message: PhoneMessage };

const maxMessages = 50;
const maxPhones = 200_000;

export type Phones = {
  get(number: string): Phone;
  behaviourOf(number: string): Behaviour;
  setBehaviour(number: string, behaviour: Partial<Behaviour>): Behaviour;
  setDefault(behaviour: Partial<Behaviour>): Behaviour;
  receive(number: string, message: Omit<PhoneMessage, 'at'>): void;
  recent(count: number): Phone[];
  watch(listener: (event: PhoneEvent) => void): () => void;
  reset(): void;
};

export const createPhones = (): Phones => {
  const phones = new Map<string, Phone>();
  const watchers = new Set<(event: PhoneEvent) => void>();
  let standard = defaultBehaviour;

  const get = (number: string): Phone => {
    const known = phones.get(number);
    if (known) return known;
    const phone: Phone = { number, messages: [], behaviour: {} };
    const [oldest] = phones.keys();
    if (phones.size >= maxPhones && oldest !== undefined) phones.delete(oldest);
    phones.set(number, phone);
    return phone;
  };

  return {
    get,
    behaviourOf: (number) => ({ ...standard, ...phones.get(number)?.behaviour }),
    setBehaviour: (number, behaviour) => {
      const phone = get(number);
      phone.behaviour = { ...phone.behaviour, ...behaviour };
      return { ...standard, ...phone.behaviour };
    },
    setDefault: (behaviour) => {
      standard = { ...standard, ...behaviour };
      return standard;
    },
    receive: (number, message) => {
      const received = { ...message, at: new Date().toISOString() };
      const { messages } = get(number);
      messages.unshift(received);
      if (messages.length > maxMessages) messages.length = maxMessages;
      for (const watcher of watchers) watcher({ phone: number, message: received });
    },
    recent: (count) =>
      [...phones.values()]
        .filter(({ messages }) => messages.length > 0)
        .slice(-1_000)
        .sort((left, right) =>
          (right.messages[0]?.at ?? '').localeCompare(left.messages[0]?.at ?? ''),
        )
        .slice(0, count),
    watch: (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    reset: () => {
      phones.clear();
      standard = defaultBehaviour;
    },
  };
};
