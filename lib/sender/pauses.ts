// Channels and numbers that operators have paused: remembered in every process until something is announced.
import type { PriceStore, SwitchName } from '../billing/price-store.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { ChannelName } from '../messages/rules.ts';

export type Pauses = {
  /** Whether a channel is paused, or the number of it that would send. Asks nobody. */
  isPaused(channel: ChannelName, numberId?: string): boolean;
  /** Since when (ms) the channel or the number is paused; undefined when it is not. */
  since(channel: ChannelName, numberId?: string): number | undefined;
  /** Asks at once: for whoever has just changed something. Never throws. */
  refresh(): Promise<void>;
  start(): Promise<void>;
  stop(): void;
};

export const channelSwitch = (channel: ChannelName): SwitchName => `channel:${channel}`;
export const numberSwitch = (numberId: string): SwitchName => `number:${numberId}`;

/** Together with the poll of announcements (keys/revocations.ts) and a query this stays under a second. */
const lookMs = 200;
const rememberMs = 60_000;

/**
 * Asks MySQL when an announcement was heard, and once a minute, beside the sends. While it cannot be asked, what was
 * last known holds: an outage neither pauses anything nor lets anything go.
 */
export const createPauses = (deps: {
  prices: Pick<PriceStore, 'pausedSince'>;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
  log: Log;
}): Pauses => {
  const { prices, revocations, clock, log } = deps;
  let known: ReadonlyMap<SwitchName, number> = new Map();
  let asked: { epoch: string | undefined; at: number } | undefined;
  let asking = false;
  let timer: NodeJS.Timeout | undefined;

  const ask = async (): Promise<void> => {
    asking = true;
    // The epoch of before the question: what is announced meanwhile is asked for again.
    const now = { epoch: revocations.epoch(), at: clock.now() };
    try {
      known = await prices.pausedSince();
      asked = now;
    } catch (error) {
      log.debug({ reason: describeError(error) }, 'pauses not read');
    } finally {
      asking = false;
    }
  };

  const look = (): void => {
    const epoch = revocations.epoch();
    const fresh = asked && asked.epoch === epoch && clock.now() - asked.at < rememberMs;
    if (!fresh && !asking) void ask();
  };

  const since: Pauses['since'] = (channel, numberId) => {
    const own = numberId === undefined ? undefined : known.get(numberSwitch(numberId));
    return known.get(channelSwitch(channel)) ?? own;
  };

  return {
    since,
    refresh: ask,
    isPaused: (channel, numberId) => since(channel, numberId) !== undefined,
    start: async () => {
      await ask();
      timer = setInterval(look, lookMs);
    },
    stop: () => clearInterval(timer),
  };
};
