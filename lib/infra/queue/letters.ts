// The dead letters of a job: read without using them up, given back to work, or thrown away.
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Channel, GetMessage } from 'amqplib';
import type { Broker } from './broker.ts';
import { type DeadLetter, readDead } from './dead.ts';
import { createSureCount } from './sure-count.ts';
import { deadQueue } from './topology.ts';

/** `id` names the letter for as long as it is in its queue; the same job dead a second time is another letter. */
export type Letter = DeadLetter & { id: string; messageId: string; content: Buffer };

export type Order = {
  how: 'redrive' | 'purge';
  wanted: (letter: Letter) => boolean;
  /** Ends after this many. */
  most: number;
  perSecond: number;
  signal: AbortSignal;
  onProgress(settled: number): void;
};

export type Settled = {
  settled: number;
  /** Letters that were looked at. */
  seen: number;
  /** `held`: so many unwanted ones lie before the rest that the order ended; they must go first. */
  end: 'empty' | 'most' | 'stopped' | 'held';
};

export type Letters = {
  /** At most `most` letters, the oldest first, and how many there are in all; every one stays where it is. */
  scan(job: string, most: number): Promise<{ letters: Letter[]; total: number }>;
  /**
   * Gives letters back to work or throws them away; those that arrive meanwhile are left. Each letter is
   * given up with one word to the broker, so whatever ends this in the middle leaves it either dead or delivered.
   * @throws BrokerUnavailable or amqplib's error when the connection is lost
   */
  settle(job: string, order: Order): Promise<Settled>;
  /**
   * How many letters each job has, those in the hands of an order included; no look of this process hides any.
   * @throws BrokerUnavailable
   */
  counts(jobs: readonly string[]): Promise<Map<string, number>>;
};

const batchMax = 100;
/** Unwanted letters wait in memory, here and at the broker, until the order ends. */
export const heldMax = 20_000;
/** A look that has just ended gives its letters back in the background. */
const emptyLooks = 5;
const emptyPauseMs = 100;
const backLooks = 50;
const backPauseMs = 10;
/** See lane.ts: the broker forgets single words that come right before the end of a channel. */
const lingerMs = 200;

const idOf = ({ properties, content }: GetMessage, { reason, deadAtMs }: DeadLetter): string => {
  const headers = (properties.headers ?? {}) as Record<string, unknown>;
  const said = [properties.messageId, reason, deadAtMs, headers.attempt, headers.first_failed_at];
  return createHash('sha256').update(said.join('\n')).update(content).digest('hex').slice(0, 16);
};

const toLetter = (message: GetMessage): Letter => {
  const dead = readDead(message.properties.headers);
  const messageId = String(message.properties.messageId ?? '');
  return { ...dead, id: idOf(message, dead), messageId, content: message.content };
};

/** Returns everything in hand, and waits until the queue has as many as `total`, so that the next look sees them. */
const giveBack = async (channel: Channel, queue: string, total: number): Promise<void> => {
  channel.nackAll(true);
  for (let looks = 0; looks < backLooks; looks++) {
    if ((await channel.checkQueue(queue)).messageCount >= total) return;
    await pause(backPauseMs);
  }
};

// The broker returns many letters in any order (3.10.8: more than 32 of them).
const byDeath = (one: Letter, other: Letter): number =>
  (one.deadAtMs ?? 0) - (other.deadAtMs ?? 0) || (one.id < other.id ? -1 : 1);

const take = async (channel: Channel, queue: string, count: number): Promise<GetMessage[]> => {
  const got = await Promise.all(Array.from({ length: count }, () => channel.get(queue)));
  return got.filter((one) => one !== false);
};

/** The oldest letters of a queue, which stay in it, and how many it has. */
const lookAt = async (channel: Channel, queue: string, most: number) => {
  const found: GetMessage[] = [];
  while (found.length < most) {
    const size = Math.min(batchMax, most - found.length);
    const batch = await take(channel, queue, size);
    found.push(...batch);
    if (batch.length < size) break;
  }
  const { messageCount: rest } = await channel.checkQueue(queue);
  const inQueue = found.length + rest;
  if (found.length > 0) await giveBack(channel, queue, inQueue);
  return { found, inQueue };
};

/** One piece of work at a time for each name. */
const createSingleFile = () => {
  const last = new Map<string, Promise<unknown>>();
  return <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const mine = (last.get(name) ?? Promise.resolve()).then(work, work);
    last.set(
      name,
      mine.catch(() => undefined),
    );
    return mine;
  };
};

/** Gives up the wanted ones of a batch, and answers how many; the others stay in hand. `clean`: none is in hand. */
const giveUp = (
  channel: Channel,
  batch: readonly GetMessage[],
  order: Order,
  clean: boolean,
): number => {
  const wanted = batch.filter((message) => order.wanted(toLetter(message)));
  const last = batch.at(-1);
  const word = (message: GetMessage, allUpTo: boolean): void =>
    order.how === 'redrive' ? channel.nack(message, allUpTo, false) : channel.ack(message, allUpTo);
  if (clean && last && wanted.length === batch.length) word(last, true);
  else for (const message of wanted) word(message, false);
  return wanted.length;
};

/** Whether an order has come to its end; `there` letters were in the queue when it began. */
const endOf = (done: Settled, order: Order, there: number): Settled['end'] | undefined => {
  if (done.settled >= order.most) return 'most';
  if (done.seen >= there) return 'empty';
  if (order.signal.aborted) return 'stopped';
  return done.seen - done.settled >= heldMax ? 'held' : undefined;
};

/** A tenth of a second's worth, so that a slow order has few letters in hand. */
const batchSize = (done: Settled, { most, perSecond }: Order, there: number): number =>
  Math.min(
    ...[batchMax, there - done.seen, most - done.settled],
    Math.max(1, Math.ceil(perSecond / 10)),
  );

const paced = async (startedAt: number, settled: number, { perSecond, signal }: Order) => {
  const ahead = startedAt + (settled * 1000) / perSecond - performance.now();
  if (ahead > 1) await pause(ahead, undefined, { signal }).catch(() => undefined);
};

/** What is done so far, and how many letters come next. */
type Batch = { done: Settled; size: number };

/** Longer than a look of another process hides letters. */
const lookAgainMs = 200;

type Deps = {
  broker: Pick<Broker, 'look'>;
  /** Waits before a second count; default 200 ms. */
  beforeAgain?: () => Promise<unknown>;
};

/** The letters of all jobs; within a process looks, counts and orders take turns, so that none hides letters from another. */
export const createLetters = ({
  broker,
  beforeAgain = () => pause(lookAgainMs),
}: Deps): Letters => {
  const turn = createSingleFile();
  /** How many letters orders have in hand, by job. */
  const kept = new Map<string, number>();
  const surely = createSureCount(beforeAgain);

  const countOnce = (channel: Channel, job: string): Promise<number> =>
    turn(job, async () => {
      const { messageCount } = await channel.checkQueue(deadQueue(job));
      return messageCount + (kept.get(job) ?? 0);
    });

  /** Takes a batch and gives up what is wanted, before anybody counts or looks. */
  const takeBatch = (channel: Channel, job: string, order: Order, { done, size }: Batch) =>
    turn(job, async () => {
      const batch = await take(channel, deadQueue(job), size);
      const settled = giveUp(channel, batch, order, done.seen === done.settled);
      done.seen += batch.length;
      done.settled += settled;
      kept.set(job, done.seen - done.settled);
      if (settled > 0) order.onProgress(done.settled);
      return batch.length;
    });

  const work = async (channel: Channel, job: string, order: Order): Promise<Settled> => {
    const queue = deadQueue(job);
    // In turn: what somebody looks at just now would be missing.
    const { messageCount: there } = await turn(job, async () => channel.checkQueue(queue));
    const startedAt = performance.now();
    const done: Settled = { settled: 0, seen: 0, end: 'empty' };
    let empty = 0;
    while (empty < emptyLooks) {
      const end = endOf(done, order, there);
      if (end !== undefined) return { ...done, end };
      const taken = await takeBatch(channel, job, order, {
        ...{ done, size: batchSize(done, order, there) },
      });
      empty = taken === 0 ? empty + 1 : 0;
      if (empty > 0) await pause(emptyPauseMs);
      await paced(startedAt, done.settled, order);
    }
    return done;
  };

  return {
    scan: (job, most) =>
      turn(job, () =>
        broker.look(async (channel) => {
          const { found, inQueue } = await lookAt(channel, deadQueue(job), most);
          const total = inQueue + (kept.get(job) ?? 0);
          return { letters: found.map(toLetter).sort(byDeath), total };
        }),
      ),
    settle: (job, order) =>
      broker.look(async (channel) => {
        try {
          const settled = await work(channel, job, order);
          const held = settled.seen - settled.settled;
          await turn(job, async () => {
            if (held > 0) await giveBack(channel, deadQueue(job), held);
            kept.delete(job);
          });
          await pause(lingerMs);
          return settled;
        } finally {
          kept.delete(job);
        }
      }),
    counts: (names) =>
      broker.look(
        async (channel) =>
          new Map(
            await Promise.all(
              names.map(async (job): Promise<[string, number]> => {
                return [job, await surely(job, () => countOnce(channel, job))];
              }),
            ),
          ),
      ),
  };
};
