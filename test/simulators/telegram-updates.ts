// Updates of the simulated Telegram: numbered, one at a time per chat, repeated until the webhook takes them (reference 02 section 9.5).
import { randomInt } from 'node:crypto';
import type { Deliveries } from './deliveries.ts';
import type { JsonObject } from './http.ts';
import type { BotOptions } from './telegram.ts';

export type Webhook = {
  /** Undefined: the API's own address, which may move. */
  url: string | undefined;
  secret: string;
  allowed: string[] | undefined;
  maxConnections: number;
};

const maxPending = 10_000;

export type Updates = ReturnType<typeof createUpdates>;

/** Creates the updates of the bot. The webhook is set from the start; deleteWebhook turns to getUpdates. */
export const createUpdates = (deps: {
  deliveries: Deliveries;
  apiUrl(): string;
  options: BotOptions;
}) => {
  const standard = (): Webhook => ({
    url: undefined,
    secret: deps.options.webhookSecret,
    allowed: undefined,
    maxConnections: 40,
  });
  let webhook: Webhook | undefined = standard();
  // Sequential per chat: each update waits for the one before it.
  const tails = new Map<number, Promise<unknown>>();
  const last = new Map<number, JsonObject>();
  let stored: JsonObject[] = [];
  // Random, as after a week without updates: a restarted simulator must not repeat ids.
  let updateId = randomInt(100_000_000, 2_000_000_000);
  let pending = 0;

  const urlOf = (hook: Webhook): string | undefined => {
    if (hook.url !== undefined) return hook.url;
    return deps.apiUrl() ? `${deps.apiUrl()}/v1/inbound/telegram` : undefined;
  };

  const deliver = async (update: JsonObject): Promise<boolean> => {
    const hook = webhook;
    if (!hook) {
      stored = [...stored.slice(1 - maxPending), update];
      return false;
    }
    const delivery = {
      url: () => webhook && urlOf(webhook),
      headers: { 'x-telegram-bot-api-secret-token': hook.secret },
      body: Buffer.from(JSON.stringify(update)),
      events: 1,
      honourRetryAfter: true,
    };
    return deps.deliveries.post(delivery);
  };

  const enqueue = (chatId: number, update: JsonObject): Promise<boolean> => {
    if (pending >= maxPending) return Promise.resolve(false);
    pending += 1;
    const turn = (tails.get(chatId) ?? Promise.resolve())
      .then(() => deliver(update))
      .finally(() => {
        pending -= 1;
        if (tails.get(chatId) === turn) tails.delete(chatId);
      });
    tails.set(chatId, turn);
    return turn;
  };

  return {
    /** Sends an update of a chat; resolves true when the webhook took it. */
    push: (chatId: number, kind: string, value: JsonObject): Promise<boolean> => {
      if (webhook?.allowed && !webhook.allowed.includes(kind)) return Promise.resolve(false);
      updateId += 1;
      const update = { update_id: updateId, [kind]: value };
      if (last.size >= maxPending) last.clear();
      last.set(chatId, update);
      return enqueue(chatId, update);
    },
    /** Sends the last update of a chat again, under the same update_id. */
    repeat: (chatId: number): Promise<boolean> => {
      const update = last.get(chatId);
      return update ? enqueue(chatId, update) : Promise.resolve(false);
    },
    webhook: (): Webhook | undefined => webhook,
    webhookUrl: (): string => (webhook ? (urlOf(webhook) ?? '') : ''),
    setWebhook: (hook: Webhook | undefined): void => {
      webhook = hook;
    },
    pending: (): number => pending + stored.length,
    dropPending: (): void => {
      stored = [];
    },
    /** Stored updates from `offset` on; the ones before it are confirmed and forgotten. */
    take: (offset: number, limit: number): JsonObject[] => {
      if (offset > 0) stored = stored.filter(({ update_id: id }) => Number(id) >= offset);
      return stored.slice(0, limit);
    },
    reset: (): void => {
      webhook = standard();
      stored = [];
      last.clear();
    },
  };
};
