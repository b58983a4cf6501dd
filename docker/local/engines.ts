// The three engines of a stack: private instances, started side by side, or the user's own servers.
import { type Engine, type EngineContext, ownName, portNames } from './engine.ts';
import { createMariadb } from './mariadb.ts';
import { type EngineName, findPrograms, installMissing } from './packages.ts';
import { reservePorts } from './ports.ts';
import { createRabbitmq } from './rabbitmq.ts';
import { createRedis } from './redis.ts';
import type { State } from './state.ts';
import type { Supervisor } from './supervisor.ts';

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

/** Where the engines are. `management` is missing when RabbitMQ is the user's own. */
export type Engines = {
  mysql: string;
  redis: string;
  amqp: string;
  management: string | undefined;
};

const startOne = async (
  engine: Engine,
  supervisor: Supervisor,
  signal: AbortSignal,
): Promise<void> => {
  await engine.prepare(signal);
  for (const program of engine.programs) await supervisor.start(program);
};

// Nobody needs the data of disposable engines again, so they are not asked to put them in order.
const disposable = (engine: Engine): Engine => ({
  ...engine,
  programs: engine.programs.map((program) => ({ ...program, stopSignal: 'SIGKILL' })),
});

/** Names of the processes the engines may consist of, in the order in which they are ended. */
export const engineProcesses = [['rabbitmq', 'mysql', 'redis'], ['epmd']] as const;

/**
 * Starts what `env` does not name (MYSQL_URL, REDIS_URL, AMQP_URL) and resolves when all answer.
 * @throws InstallError, StartError, or ClosedError when the supervisor is closed meanwhile.
 */
export const startEngines = async (deps: {
  state: State;
  supervisor: Supervisor;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  /** The data are thrown away afterwards: ends the engines at once instead of cleanly. */
  disposable: boolean;
  say(line: string): void;
}): Promise<Engines> => {
  const { state, supervisor, env, signal } = deps;
  const own = (Object.keys(makers) as EngineName[]).filter((name) => !env[variables[name]]);
  await installMissing(own, deps);
  const ports = await reservePorts(portNames, state.at('engines.json'));
  const starting = own.map((name) => {
    const context = { state, ports, programs: findPrograms(name) ?? {} };
    const engine = makers[name](context);
    return startOne(deps.disposable ? disposable(engine) : engine, supervisor, signal);
  });
  await Promise.all(starting);

  const account = (secret: string) => `${ownName}:${state.secret(secret)}`;
  const rabbitmq = account('rabbitmqPassword');
  return {
    mysql:
      env.MYSQL_URL || `mysql://${account('mysqlPassword')}@127.0.0.1:${ports.mysql}/${ownName}`,
    redis: env.REDIS_URL || `redis://127.0.0.1:${ports.redis}/0`,
    amqp: env.AMQP_URL || `amqp://${rabbitmq}@127.0.0.1:${ports.amqp}/${ownName}`,
    management: env.AMQP_URL ? undefined : `http://${rabbitmq}@127.0.0.1:${ports.management}`,
  };
};
