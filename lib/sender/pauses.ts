// Channels and numbers that operators have paused.
import type { PriceStore, SwitchName } from '../billing/price-store.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { ChannelName } from '../messages/rules.ts';
import { type Remembered, remember } from '../platform/settings.ts';

export type Pauses = Pick<Remembered<unknown>, 'refresh' | 'start' | 'stop'> & {
  /** Whether a channel is paused, or the number of it that would send. Asks nobody. */
  isPaused(channel: ChannelName, numberId?: string): boolean;
  /** Since when (ms) the channel or the number is paused; undefined when it is not. */
  since(channel: ChannelName, numberId?: string): number | undefined;
  /** Numbers that are paused by themselves. */
  numbers(): string[];
};

export const channelSwitch = (channel: ChannelName): SwitchName => `channel:${channel}`;
const numberPrefix = 'number:';
export const numberSwitch = (numberId: string): SwitchName => `${numberPrefix}${numberId}`;

/** What is paused, as this process knows it: a change elsewhere holds here within a second. */
export const createPauses = (deps: {
  prices: Pick<PriceStore, 'pausedSince'>;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
  log: Log;
}): Pauses => {
  const known = remember<ReadonlyMap<SwitchName, number>>(deps, new Map(), deps.prices.pausedSince);

  const since: Pauses['since'] = (channel, numberId) => {
    const own = numberId === undefined ? undefined : known.now().get(numberSwitch(numberId));
    return known.now().get(channelSwitch(channel)) ?? own;
  };

  const { refresh, start, stop } = known;
  return {
    ...{ since, refresh, start, stop },
    numbers: () =>
      [...known.now().keys()].flatMap((name) =>
        name.startsWith(numberPrefix) ? [name.slice(numberPrefix.length)] : [],
      ),
    isPaused: (channel, numberId) => since(channel, numberId) !== undefined,
  };
};
