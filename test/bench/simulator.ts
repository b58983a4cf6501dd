// The simulators' control API, as far as the benchmark uses it.
const call = async (url: string, method: string, body?: unknown): Promise<unknown> => {
  const answer = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`The simulators answered ${answer.status}: ${text}`);
  return JSON.parse(text);
};

type Stats = {
  whatsapp: { accepted?: number };
  webhooks: { whatsapp: { waiting: number } };
};

export type Simulator = {
  /** Whether the statuses sent and delivered are reported for the messages from now on. */
  reportReceipts(wanted: boolean): Promise<void>;
  /** Messages accepted so far, and webhook calls not yet taken by their receiver. */
  counts(): Promise<{ accepted: number; waiting: number }>;
};

/** The simulators at `url`, with the WhatsApp Business account `wabaId`. */
export const createSimulator = (url: string, wabaId: string): Simulator => ({
  reportReceipts: async (wanted) => {
    await call(`${url}/businesses/${wabaId}`, 'PATCH', { subscribed: wanted });
  },
  counts: async () => {
    const { whatsapp, webhooks } = (await call(`${url}/stats`, 'GET')) as Stats;
    return { accepted: whatsapp.accepted ?? 0, waiting: webhooks.whatsapp.waiting };
  },
});
