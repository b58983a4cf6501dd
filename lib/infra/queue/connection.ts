// One connection that comes back for ever: backoff with jitter, several addresses, and no channel that dies unnoticed.
import { type ChannelModel, connect } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';

export type Connection = {
  start(): Promise<void>;
  isBlocked(): boolean;
  close(): Promise<void>;
};

const firstDelayMs = 100;
const maxDelayMs = 5_000;

const delayOf = (failures: number): number => {
  const delay = Math.min(firstDelayMs * 2 ** Math.min(failures, 10), maxDelayMs);
  return delay * (0.5 + Math.random() / 2);
};

const withHeartbeat = (url: string): string => {
  const address = new URL(url);
  if (!address.searchParams.has('heartbeat')) address.searchParams.set('heartbeat', '10');
  return address.href;
};

/**
 * Keeps a connection open. `setup` runs on every new one, `lost` when it is gone; a setup that throws counts as a
 * lost connection.
 */
export const createConnection = (options: {
  urls: readonly string[];
  name: string;
  log: Log;
  setup(model: ChannelModel): Promise<void>;
  lost(): void;
}): Connection => {
  const { urls, name, log, setup, lost } = options;
  let model: ChannelModel | undefined;
  let closing = false;
  let blocked = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;

  const open = async (): Promise<void> => {
    const url = withHeartbeat(urls[failures % urls.length] ?? '');
    const opened = await connect(url, {
      noDelay: true,
      keepAlive: true,
      timeout: 5_000,
      clientProperties: { connection_name: name },
    });
    opened.on('error', (error: unknown) =>
      log.warn({ reason: describeError(error) }, 'broker connection failed'),
    );
    opened.on('blocked', () => {
      blocked = true;
      log.warn({}, 'broker blocks publishing');
    });
    opened.on('unblocked', () => {
      blocked = false;
    });
    opened.on('close', onClose);
    // Every channel listens for the end of its connection.
    opened.setMaxListeners(0);
    model = opened;
    await setup(opened);
    failures = 0;
    blocked = false;
  };

  const onClose = (): void => {
    model = undefined;
    lost();
    if (!closing) again();
  };

  const again = (): void => {
    if (closing || timer) return;
    timer = setTimeout(() => {
      timer = undefined;
      attempt().catch(() => undefined);
    }, delayOf(failures++));
  };

  const attempt = async (): Promise<void> => {
    try {
      await open();
      log.info({ connection: name }, 'broker connected');
    } catch (error) {
      log.warn({ reason: describeError(error) }, 'broker not reached');
      // A connection that opened but could not be set up announces its own close.
      if (model) await model.close().catch(() => undefined);
      else again();
      throw error;
    }
  };

  return {
    start: () => attempt().catch(() => undefined),
    isBlocked: () => blocked,
    close: async () => {
      closing = true;
      clearTimeout(timer);
      await model?.close().catch(() => undefined);
    },
  };
};

/** Closes the connection when one of its channels ends by itself: only then is everything set up anew. */
export const guardChannel = (
  model: ChannelModel,
  channel: { on(event: string, listener: (...args: never[]) => void): unknown },
  log: Log,
): void => {
  let modelClosed = false;
  model.once('close', () => {
    modelClosed = true;
  });
  channel.on('error', ((error: unknown) =>
    log.warn({ reason: describeError(error) }, 'broker channel failed')) as never);
  channel.on('close', () => {
    if (!modelClosed) model.close().catch(() => undefined);
  });
};
