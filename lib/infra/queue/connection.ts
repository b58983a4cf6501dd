// One connection that comes back for ever: backoff with jitter, several addresses in turn, an end within a bound.
import { type ChannelModel, connect } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';

export type Connection = {
  /** Makes the first attempt; further ones follow by themselves. */
  start(): Promise<void>;
  isBlocked(): boolean;
  close(): Promise<void>;
};

export type ConnectionOptions = {
  urls: readonly string[];
  /** As the broker's own pages show it. */
  name: string;
  log: Log;
  /** Runs on every new connection; one that throws counts as a lost connection. */
  setup(model: ChannelModel): Promise<void>;
  lost(): void;
  onReconnect(): void;
};

const firstDelayMs = 100;
const maxDelayMs = 5_000;
/** A connection that lived shorter than this did not end the trouble: the backoff goes on. */
const steadyMs = 5_000;
const closeWithinMs = 2_000;

/** Milliseconds to wait after a number of failures in a row, between a half and the whole of the step. */
export const backoffMs = (failures: number, random: number): number =>
  Math.min(firstDelayMs * 2 ** Math.min(failures, 10), maxDelayMs) * (0.5 + random / 2);

/** The addresses with a heartbeat of 10 s. @throws Error without the address, which holds a password */
export const readAddresses = (urls: readonly string[]): string[] => {
  if (urls.length === 0) throw new Error('no address of a broker is given');
  return urls.map((url) => {
    const address = URL.parse(url);
    if (!address || !/^amqps?:$/.test(address.protocol)) {
      throw new Error('an address of a broker is no amqp:// or amqps:// URL');
    }
    if (!address.searchParams.has('heartbeat')) address.searchParams.set('heartbeat', '10');
    return address.href;
  });
};

/** Closes an open connection; one whose broker does not answer is cut off. */
export const closeModel = async (model: ChannelModel): Promise<void> => {
  const closed = Promise.withResolvers<void>();
  model.once('close', () => closed.resolve());
  const timer = setTimeout(() => {
    const { stream } = model.connection as unknown as { stream: { destroy(error: Error): void } };
    stream.destroy(new Error('the broker did not answer the close'));
  }, closeWithinMs);
  // Refused when a close is under way already: then its end is awaited.
  model.close().catch(() => undefined);
  await closed.promise;
  clearTimeout(timer);
};

const openModel = async (url: string, name: string, log: Log): Promise<ChannelModel> => {
  const model = await connect(url, {
    noDelay: true,
    keepAlive: true,
    timeout: 5_000,
    clientProperties: { connection_name: name },
  });
  // Every channel listens for the end of its connection.
  model.setMaxListeners(0);
  model.on('error', (error: unknown) =>
    log.warn({ connection: name, reason: describeError(error) }, 'broker connection failed'),
  );
  return model;
};

type State = {
  model: ChannelModel | undefined;
  blocked: boolean;
  closing: boolean;
  /** Failures in a row. */
  failures: number;
  attempts: number;
  upAt: number | undefined;
  timer: NodeJS.Timeout | undefined;
};

const watchBlocking = (state: State, model: ChannelModel, { name, log }: ConnectionOptions) => {
  state.blocked = false;
  model.on('blocked', () => {
    state.blocked = true;
    log.warn({ connection: name }, 'broker blocks publishing');
  });
  model.on('unblocked', () => {
    state.blocked = false;
    log.info({ connection: name }, 'broker takes messages again');
  });
};

/** Keeps a connection open until it is closed here. @throws Error at once for addresses that are none */
export const createConnection = (options: ConnectionOptions): Connection => {
  const { name, log, setup, lost, onReconnect } = options;
  const urls = readAddresses(options.urls);
  const state: State = {
    ...{ model: undefined, blocked: false, closing: false },
    ...{ failures: 0, attempts: 0, upAt: undefined, timer: undefined },
  };

  const again = (): void => {
    if (state.closing || state.timer) return;
    state.timer = setTimeout(
      () => {
        state.timer = undefined;
        void attempt();
      },
      backoffMs(state.failures++, Math.random()),
    );
  };

  const onClose = (): void => {
    state.model = undefined;
    if (state.upAt !== undefined && performance.now() - state.upAt > steadyMs) state.failures = 0;
    lost();
    again();
  };

  const setUp = async (model: ChannelModel): Promise<void> => {
    state.model = model;
    watchBlocking(state, model, options);
    model.on('close', onClose);
    try {
      await setup(model);
    } catch (error) {
      log.warn({ connection: name, reason: describeError(error) }, 'broker not set up');
      if (state.model === model) await closeModel(model);
      return;
    }
    if (state.upAt !== undefined) onReconnect();
    state.upAt = performance.now();
    log.info({ connection: name }, 'broker connected');
  };

  const attempt = async (): Promise<void> => {
    const url = urls[state.attempts++ % urls.length] ?? '';
    try {
      const model = await openModel(url, name, log);
      await (state.closing ? closeModel(model) : setUp(model));
    } catch (error) {
      log.warn({ connection: name, reason: describeError(error) }, 'broker not reached');
      again();
    }
  };

  return {
    start: attempt,
    isBlocked: () => state.blocked,
    close: async () => {
      state.closing = true;
      clearTimeout(state.timer);
      if (state.model) await closeModel(state.model);
    },
  };
};
