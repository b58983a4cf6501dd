// The simulated phones through their control API, as a person would use them.
export type PhoneMessage = {
  channel: string;
  code: string | null;
  text: string;
  at: string;
  /** The WhatsApp number it came from. */
  phone_number_id?: string;
};

export type TestPhone = {
  number: string;
  messages(): Promise<PhoneMessage[]>;
  /** The newest code that arrived, or ''. */
  code(): Promise<string>;
  behave(behaviour: { whatsapp?: string; telegram?: string; delay_ms?: number }): Promise<void>;
  /** Taps a link; `contact` is shared when asked for (null: none). Answers what the bot said. */
  tap(url: unknown, contact?: string | null): Promise<string[]>;
};

let nextNumber = (process.pid * 7_919 + Date.now()) % 7_900_000;

/** A number that no other test of this run uses. */
export const aNumber = (): string => {
  nextNumber = (nextNumber + 1) % 7_900_000;
  return `+1415${2_000_000 + nextNumber}`;
};

const ask = async (url: string, method: string, body?: unknown): Promise<unknown> => {
  const answer = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the simulators answered ${answer.status}: ${text}`);
  return text === '' ? {} : JSON.parse(text);
};

/** A phone of the simulators at `simUrl`. */
export const createPhone = (simUrl: string, number = aNumber()): TestPhone => {
  const base = `${simUrl}/phones/${encodeURIComponent(number)}`;
  const messages = async () =>
    ((await ask(`${base}/messages`, 'GET')) as { messages: PhoneMessage[] }).messages;
  return {
    number,
    messages,
    code: async () => (await messages()).find(({ code }) => code !== null)?.code ?? '',
    behave: async (behaviour) => {
      await ask(`${base}/behaviour`, 'PUT', behaviour);
    },
    tap: async (url, contact) => {
      const shared = contact === undefined ? {} : { contact };
      const heard = await ask(`${base}/telegram/start`, 'POST', { url, ...shared });
      return (heard as { messages: string[] }).messages;
    },
  };
};
