// The Redis connection: one client for a single server or a Cluster, and its one error for an outage.
import { Cluster, type ClusterOptions, type Command, Redis, type RedisOptions } from 'ioredis';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import { parseRedisAddress, type RedisAddress } from './redis-address.ts';

/** An ioredis client that also says whether it would take a command right now. */
export type RedisClient = (Redis | Cluster) & { isReady(): boolean };

/** Redis could not be reached, did not answer in time or cannot write; the outcome of the command is unknown. */
export class RedisUnavailable extends Error {
  override name = 'RedisUnavailable';
}

// Server replies that mean "not now", whatever was asked. Anything else the server says is a mistake of ours.
const unavailableReplies = new Set(
  (
    'LOADING READONLY CLUSTERDOWN MASTERDOWN TRYAGAIN ' +
    'OOM MISCONF NOREPLICAS BUSY NOAUTH WRONGPASS'
  ).split(' '),
);

const isOutage = (error: Error): boolean => {
  if (error.name !== 'ReplyError') return !(error instanceof TypeError);
  const [first = ''] = error.message.split(' ', 1);
  return unavailableReplies.has(first);
};

// The message stays as it is: ioredis itself recognises its errors by their text.
const asUnavailable = (error: Error): Error =>
  error instanceof RedisUnavailable || !isOutage(error)
    ? error
    : new RedisUnavailable(error.message);

/** Whether the server says that it is no master any more. */
export const isReadOnly = (text: string): boolean => text.startsWith('READONLY');

/** The error for a reply of the server that came inside another reply; RedisUnavailable where it means "not now". */
export const replyError = (text: string): Error =>
  asUnavailable(Object.assign(new Error(text), { name: 'ReplyError' }));

const mapErrors = (client: Redis | Cluster): void => {
  const send = client.sendCommand.bind(client) as (command: Command, ...rest: unknown[]) => unknown;
  client.sendCommand = (command: Command, ...rest: unknown[]) => {
    const reject = command.reject;
    command.reject = (error: Error) => reject.call(command, asUnavailable(error));
    return send(command, ...rest);
  };
};

const maxBackoffMs = 2_000;

/** Wait before reconnect attempt `times` (from 1), in ms: doubles from 50 ms to 2 s, plus up to a quarter of jitter. */
export const reconnectDelayMs = (times: number, random: () => number = Math.random): number => {
  const base = Math.min(25 * 2 ** Math.min(times, 10), maxBackoffMs);
  return Math.round(base * (1 + random() / 4));
};

export type RedisSettings = {
  /** `redis[s]://[user:password@]host:port[/db]`; several with commas between them are the nodes of a Cluster. */
  url: string;
  log: Log;
  /** A command without an answer after this long fails with RedisUnavailable. Default 500. */
  commandTimeoutMs?: number;
  /** Default 2,000. */
  connectTimeoutMs?: number;
  /** Connection name shown by CLIENT LIST. */
  name?: string;
};

// A socket that owes an answer and stays silent for this many command timeouts is dead, whatever TCP believes.
const silentTimeouts = 4;

type CommonOptions = RedisOptions & { replyMapping: 'legacy' };

const commonOptions = (settings: RedisSettings): CommonOptions => {
  const commandTimeout = settings.commandTimeoutMs ?? 500;
  return {
    commandTimeout,
    connectTimeout: settings.connectTimeoutMs ?? 2_000,
    socketTimeout: silentTimeouts * commandTimeout,
    keepAlive: 10_000,
    noDelay: true,
    // A request must fail at once and never run twice: nothing is queued while down, nothing is sent again.
    // 0 and not 1: with resending off, 1 would leave the commands in flight hanging until their timeout.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: true,
    // Measured: RESP2 is 5-10 % faster than RESP3 here.
    protocol: 2,
    replyMapping: 'legacy',
    // After a failover the old address answers READONLY: connect anew, but do not repeat the command.
    reconnectOnError: (error) => (isReadOnly(error.message) ? 1 : false),
    ...(settings.name === undefined ? {} : { connectionName: settings.name }),
  };
};

const openSingle = (address: RedisAddress, settings: RedisSettings): Redis =>
  new Redis({
    ...commonOptions(settings),
    ...address.login,
    host: address.host,
    port: address.port,
    db: address.db,
    enableOfflineQueue: false,
    // What one tick asks travels in one write. While a batch is unanswered the next one waits, so with the server
    // silent a command may take two timeouts to fail. Not in a Cluster: a batch there fails as a whole on a move.
    enableAutoPipelining: true,
    // Scripts enter themselves here (redis-script.ts).
    autoPipeliningIgnoredCommands: [],
    retryStrategy: (times) => reconnectDelayMs(times),
  });

const openCluster = (addresses: RedisAddress[], settings: RedisSettings): Cluster => {
  const options: ClusterOptions & { redisOptions: CommonOptions } = {
    redisOptions: { ...commonOptions(settings), ...addresses[0]?.login },
    enableOfflineQueue: false,
    clusterRetryStrategy: (times) => reconnectDelayMs(times),
    clusterNodeRetryStrategy: (times) => reconnectDelayMs(times),
    slotsRefreshTimeout: settings.connectTimeoutMs ?? 2_000,
    // A lost answer is an unknown outcome here too: the caller decides, not the client.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    scaleReads: 'master',
  };
  return new Cluster(
    addresses.map(({ host, port }) => ({ host, port })),
    options,
  );
};

// One line per outage and one per recovery; reconnect attempts in between would only repeat the first.
const logChanges = (client: Redis | Cluster, log: Log): void => {
  let down = false;
  const lost = (reason: string) => {
    if (!down) log.warn({ reason }, 'redis connection lost');
    down = true;
  };
  client.on('error', (error: unknown) => lost(describeError(error)));
  client.on('close', () => lost('connection closed'));
  client.on('ready', () => {
    down = false;
    log.info({ cluster: client.isCluster }, 'redis ready');
  });
};

/**
 * Opens a client that reconnects for ever. It connects at once; until it is ready, and whenever the server is away,
 * every command fails immediately with RedisUnavailable (see `redisReady` to wait at start). Not for blocking commands
 * or subscriptions: they would hold up everybody's batch.
 */
export const createRedis = (settings: RedisSettings): RedisClient => {
  const texts = settings.url.split(',').map((text) => text.trim());
  const addresses = texts.filter((text) => text !== '').map(parseRedisAddress);
  const [first] = addresses;
  if (first === undefined) throw new TypeError('a Redis address is missing');
  const client = texts.length > 1 ? openCluster(addresses, settings) : openSingle(first, settings);
  mapErrors(client);
  logChanges(client, settings.log);
  return Object.assign(client, { isReady: () => client.status === 'ready' });
};

// A Cluster client connects to a node with the first command for it, and commands that come meanwhile fail.
const reachNodes = async (client: RedisClient): Promise<void> => {
  if (!(client instanceof Cluster)) return;
  for (const node of client.nodes('master')) await node.ping().catch(() => undefined);
};

/** Resolves once the client takes commands; throws RedisUnavailable after `timeoutMs`. */
export const redisReady = async (client: RedisClient, timeoutMs: number): Promise<void> => {
  await becomesReady(client, timeoutMs);
  await reachNodes(client);
};

const becomesReady = async (client: RedisClient, timeoutMs: number): Promise<void> => {
  if (client.isReady()) return;
  await new Promise<void>((resolve, reject) => {
    const ready = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      client.off('ready', ready);
      reject(new RedisUnavailable(`not ready after ${timeoutMs} ms`));
    }, timeoutMs);
    client.once('ready', ready);
  });
};

/** Lets the commands in flight finish and closes; never throws, and drops the connection if the server is away. */
export const closeRedis = async (client: RedisClient): Promise<void> => {
  if (client.isReady()) await client.quit().catch(() => undefined);
  client.disconnect();
};
