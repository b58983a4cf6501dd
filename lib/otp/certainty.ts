// Not losing what is known of a call: another run's call is waited for, and a channel's yes is kept until Redis has it.
import { setTimeout as sleep } from 'node:timers/promises';
import { isOutage } from '../infra/outages.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ChannelName } from '../messages/rules.ts';
import type { LiveRef, Verified } from './live-message.ts';
import type { ClaimDetails, LiveStore } from './store.ts';

export type CertaintyDeps = { live: LiveStore; clock: Clock };

const lookMs = 100;
const acceptAgainMs = 250;
/** Less than a worker has to shut down; the job then comes again as one whose outcome is not known. */
const acceptPatienceMs = 20_000;

/**
 * Waits for a leg that is being called, by this run or another, until it has an end or `forMs` are over; answers its
 * state then.
 */
export const awaitLeg = async (
  { live, clock }: CertaintyDeps,
  ref: LiveRef,
  leg: { channel: ChannelName; forMs: number },
): Promise<string | undefined> => {
  const until = clock.now() + leg.forMs;
  for (;;) {
    const state = (await live.find(ref))?.[leg.channel];
    if (state !== 'sending' || clock.now() >= until) return state;
    await sleep(lookMs);
  }
};

/** A verify that has lost its answer is not kept waiting longer than this. */
const verdictPatienceMs = 1_000;

/**
 * Whether a call whose answer was lost used the code up, asked until Redis is back or a moment is over; undefined when
 * it did not, or nobody can say.
 */
export const verdictAfterAll = async (
  { live, clock }: CertaintyDeps,
  recipient: string,
  { attempt, at }: { attempt: string; at: number },
): Promise<Verified | undefined> => {
  const until = clock.now() + verdictPatienceMs;
  while (clock.now() < until) {
    try {
      return await live.usedBy(recipient, attempt, at);
    } catch (error) {
      if (!isOutage(error)) throw error;
      await sleep(lookMs);
    }
  }
  return undefined;
};

type Accepted = Exclude<Awaited<ReturnType<LiveStore['accept']>>, 'forgotten'>;

/**
 * Notes that the channel took the message, as often as it takes while Redis is away: its yes is not said twice. A Redis
 * that came back without the claim is given it again, since the code could not be valid otherwise.
 * @throws RedisUnavailable in the end
 */
export const acceptSurely = async (
  { live, clock }: CertaintyDeps,
  ref: LiveRef,
  leg: { channel: ChannelName; hold: boolean; claimed: ClaimDetails },
): Promise<Accepted> => {
  const at = clock.now();
  for (;;) {
    try {
      const accepted = await live.accept(leg.channel, ref, at, leg.hold);
      if (accepted !== 'forgotten') return accepted;
      if ((await live.claim(leg.channel, ref, at, leg.claimed)) === 'abandoned') return undefined;
    } catch (error) {
      if (!isOutage(error) || clock.now() - at > acceptPatienceMs) throw error;
      await sleep(acceptAgainMs);
    }
  }
};
