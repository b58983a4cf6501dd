// The three engines of a stack: private instances, started side by side, or the user's own servers.
import { type Engine, type EngineContext, ownName, type PortName, portNames } from './engine.ts';
import { createMariadb } from './mariadb.ts';
import { openMemory } from './memory.ts';
import { type EngineName, findPrograms, installMissing } from './packages.ts';
import { reservePorts } from './ports.ts';
import { createRabbitmq } from './rabbitmq.ts';
import { createRedis } from './redis.ts';
import type { Session } from './session.ts';

const makers: Record<EngineName, (context: EngineContext) => Engine> = {
  mysql: createMariadb,
  redis: createRedis,
  rabbitmq: createRabbitmq,
};

const variables: Record<EngineName, string> = {
  mysql: 'MYSQL_URL',
  redis: 'REDIS_URL',
  rabbitmq: 'AMQP_URL',
};

const titles: Record<EngineName, string> = {
  mysql: 'the database',
  redis: 'Redis',
  rabbitmq: 'RabbitMQ',
};

/** Where the engines are. `management` is missing when RabbitMQ does not offer it to us. */
export type Engines = {
  mysql: string;
  redis: string;
  amqp: string;
  management: string | undefined;
};

/** Names of the processes the engines may consist of, in the order in which they are ended. */
export const engineProcesses = [['rabbitmq', 'mysql', 'redis'], ['epmd']] as const;

/** Engines on their way: their addresses are known, `ready` tells when each really answers. */
export type StartingEngines = { urls: Engines; ready: Record<EngineName, Promise<void>> };

// Nobody needs the data of disposable engines again, so they are not asked to put them in order.
const disposable = (engine: Engine): Engine => ({
  ...engine,
  programs: engine.programs.map((program) => ({ ...program, stopSignal: 'SIGKILL' })),
});

const startOne = async (engine: Engine, { supervisor, signal }: Session): Promise<void> => {
  await engine.prepare(signal);
  for (const program of engine.programs) await supervisor.start(program);
};

type Options = {
  /** Names the user's own engines: MYSQL_URL, REDIS_URL, AMQP_URL. */
  env: NodeJS.ProcessEnv;
  /** Engines for tests: with RabbitMQ's management API, and ended without care for their data. */
  forTests: boolean;
  /** Whether what was confirmed must outlive a loss of power. */
  durable: boolean;
};

const addresses = (
  { state }: Session,
  ports: Record<PortName, number>,
  { env, forTests }: Options,
): Engines => {
  const account = (secret: string) => `${ownName}:${state.secret(secret)}@127.0.0.1`;
  const rabbitmq = account('rabbitmqPassword');
  return {
    mysql: env.MYSQL_URL || `mysql://${account('mysqlPassword')}:${ports.mysql}/${ownName}`,
    redis: env.REDIS_URL || `redis://127.0.0.1:${ports.redis}/0`,
    amqp: env.AMQP_URL || `amqp://${rabbitmq}:${ports.amqp}/${ownName}`,
    management: forTests ? `http://${rabbitmq}:${ports.management}` : undefined,
  };
};

/**
 * Starts the engines that `env` does not name; they come up side by side.
 * @throws InstallError; each promise in `ready` may reject with StartError or ClosedError.
 */
export const startEngines = async (
  session: Session,
  options: Options,
): Promise<StartingEngines> => {
  const { state } = session;
  const names = Object.keys(makers) as EngineName[];
  const own = names.filter((name) => !options.env[variables[name]]);
  await installMissing(own, session);
  if (own.length > 0) session.say(`Starting ${own.map((name) => titles[name]).join(', ')}…`);
  const ports = await reservePorts(portNames, state.at('engines.json'));
  const { forTests, durable } = options;
  const data = (durable ? undefined : openMemory(state.folder)) ?? state.folder;
  const starting = names.map((name): [EngineName, Promise<void>] => {
    if (!own.includes(name)) return [name, Promise.resolve()];
    const programs = findPrograms(name) ?? {};
    const engine = makers[name]({
      ...{ state, data, ports, programs, durable },
      management: forTests,
    });
    const started = startOne(forTests ? disposable(engine) : engine, session);
    // Whoever waits gets the rejection; one that nobody waits for any more is not an accident.
    started.catch(() => undefined);
    return [name, started];
  });
  return {
    urls: addresses(session, ports, options),
    ready: Object.fromEntries(starting) as StartingEngines['ready'],
  };
};
