// What the tests of the queue layer share: jobs, brokers on a virtual host, a line that can be cut or go silent.
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import amqp, { type Channel, type GetMessage } from 'amqplib';
import { type Broker, type BrokerOptions, createBroker } from '../../../lib/infra/queue/broker.ts';
import type { Job } from '../../../lib/jobs.ts';
import { systemClock } from '../../../lib/kernel/clock.ts';
import { type Log, silentLog } from '../../../lib/kernel/log.ts';
import { integer, object } from '../../../lib/kernel/schema.ts';
import { uniqueName } from '../../support/names.ts';
import { createVhost } from '../../support/vhosts.ts';

export type Work = { number: number };
export const work = (number = 1): Work => ({ number });

/** A job of a test: `name` is its fresh queue, so each test takes one of its own. */
export const aJob = (name: string, more: Partial<Job<Work>> = {}): Job<Work> => ({
  name,
  payload: object({ number: integer() }) as unknown as Job<Work>['payload'],
  retrySeconds: [1],
  maxLength: 100_000,
  prefetch: 10,
  bindings: [],
  ...more,
});

const deadlineMs = 20_000;

/** Waits until `look` answers something else than undefined and false. */
export const until = async <T>(
  look: () => T | Promise<T>,
): Promise<Exclude<T, undefined | null | false>> => {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false)
      return seen as Exclude<T, undefined | null | false>;
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${String(look)}`);
    await pause(20);
  }
};

/** A log that keeps its lines. */
export const keptLog = (): Log & { lines: string[] } => {
  const lines: string[] = [];
  const write = (fields: unknown, message: string): void => {
    lines.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log = { debug: write, info: write, warn: write, error: write, child: () => log, lines };
  return log;
};

export type TestBroker = Broker & {
  /** Its open channels by role. */
  channels: Map<string, Channel>;
  /** As the broker's own pages show the two connections, without their purpose. */
  processName: string;
};

export type Rig = {
  vhost: string;
  url: string;
  /** A broker for these jobs, started unless `start` is false, and closed at the end. */
  broker(
    jobs: readonly Job<Work>[],
    more?: Partial<BrokerOptions> & { start?: boolean },
  ): Promise<TestBroker>;
  /** A channel of an operator; none of the product's. */
  operator(): Promise<Channel>;
  /** Takes the next message of a queue, waiting for it. */
  take(queue: string): Promise<GetMessage>;
  close(): Promise<void>;
};

type Ends = (() => Promise<unknown>)[];

const brokerOn =
  (url: string, ends: Ends): Rig['broker'] =>
  async (jobs, { start = true, ...more } = {}) => {
    const channels = new Map<string, Channel>();
    const processName = uniqueName('queue-test');
    const broker = createBroker({
      ...{ urls: [url], processName, jobs: jobs as unknown as Job[], log: silentLog },
      ...{ clock: systemClock, isOutage: () => false, publishTimeoutMs: 5_000 },
      onChannel: (role, channel) => channels.set(role, channel),
      ...more,
    });
    ends.push(() => broker.close());
    if (start) await broker.start();
    return { ...broker, channels, processName };
  };

/** A virtual host of its own, and what the tests do there. */
export const createRig = async (name: string): Promise<Rig> => {
  const vhost = await createVhost(name);
  const ends: Ends = [];
  const connection = await amqp.connect(vhost.url, { noDelay: true });
  const operator = async (): Promise<Channel> => {
    const channel = await connection.createChannel();
    channel.on('error', () => undefined);
    return channel;
  };
  const eyes = await operator();
  return {
    ...{ vhost: vhost.name, url: vhost.url, operator },
    broker: brokerOn(vhost.url, ends),
    take: (queue) => until(() => eyes.get(queue, { noAck: true })) as Promise<GetMessage>,
    close: async () => {
      await Promise.all(ends.map((end) => end()));
      await connection.close();
      await vhost.drop();
    },
  };
};

export type Line = {
  /** The address of the broker through this line. */
  url: string;
  connections(): number;
  /** Nothing passes any longer, in either direction, and nobody is told. */
  freeze(): void;
  /** What was held back passes. */
  thaw(): void;
  /** Ends all connections at once. */
  cut(): void;
  close(): Promise<void>;
};

/** A TCP line to the broker that can fail. */
export const createLine = async (url: string): Promise<Line> => {
  const { hostname, port } = new URL(url);
  const pairs = new Set<[net.Socket, net.Socket]>();
  let frozen = false;

  const server = net.createServer((near) => {
    const far = net.connect(Number(port), hostname);
    const pair: [net.Socket, net.Socket] = [near, far];
    pairs.add(pair);
    near.pipe(far);
    far.pipe(near);
    if (frozen) for (const socket of pair) socket.pause();
    for (const socket of pair) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const all = () => [...pairs].flat();
  const through = new URL(url);
  through.port = String((server.address() as net.AddressInfo).port);
  return {
    url: through.href,
    connections: () => pairs.size,
    freeze: () => {
      frozen = true;
      for (const socket of all()) socket.unpipe().pause();
    },
    thaw: () => {
      frozen = false;
      for (const [near, far] of pairs) {
        near.pipe(far);
        far.pipe(near);
      }
    },
    cut: () => {
      for (const socket of all()) socket.destroy();
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of all()) socket.destroy();
      await closed;
    },
  };
};

let messages = 0;
/** Options with a message id of its own. */
export const named = (prefix = 'm'): { messageId: string } => ({
  messageId: `${prefix}-${process.pid}-${++messages}`,
});

/** What a promise rejected with. */
export const errorOf = async (promise: Promise<unknown>): Promise<Error> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('no error');
  return error;
};
