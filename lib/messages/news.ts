// Events about an account are written with the change they tell of, and those of messages when the broker does not take
// them, so that no crash and no absent broker loses one.
import type { EventWire } from '../jobs.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Announcer } from './announce.ts';
import type { NewsStore } from './news-store.ts';

export type TellerDeps = {
  news: NewsStore;
  announcer: Pick<Announcer, 'announce'>;
  clock: Clock;
};

type Told = Pick<TellerDeps, 'news' | 'announcer'>;

/** Announces events that stand in the store and strikes them off. @throws when the broker does not take one */
const tellAll = async ({ news, announcer }: Told, events: readonly EventWire[]): Promise<void> => {
  // Together: those of one type travel as one message.
  await Promise.all(
    events.map(async (event) => {
      await announcer.announce(event);
      await news.strike(event.id);
    }),
  );
};

/**
 * Announces events whose change was committed, with them in it. Never throws: what the broker does not take now is
 * told in a later round, and whoever made the change is not told that it failed.
 */
export const tellNews = async (
  deps: Told & { log: Log },
  events: readonly EventWire[],
): Promise<void> => {
  try {
    await tellAll(deps, events);
  } catch (error) {
    const [first] = events;
    const fields = { type: first?.type, account_id: first?.account_id };
    deps.log.warn({ ...fields, reason: describeError(error) }, 'done, told later');
  }
};

/** Younger ones are being told by whoever wrote them. */
const leftAfterMs = 10 * second;
const roundMs = 10 * second;
const batch = 100;

/** Tells what a process that died or a broker that was away left untold; answers how many. */
export const tellLeftNews = async (deps: TellerDeps): Promise<number> => {
  const before = deps.clock.now() - leftAfterMs;
  let told = 0;
  for (;;) {
    const left = await deps.news.leftBefore(before, batch);
    await tellAll(deps, left);
    told += left.length;
    if (left.length < batch) return told;
  }
};

/** Tells what is left, again and again. Any number of processes may: an event has one id, and receivers know it. */
export const createNewsRunner = (deps: TellerDeps & { log: Log }): Chore =>
  repeat(
    async () => {
      await tellLeftNews(deps);
    },
    roundMs,
    deps.log,
  );
