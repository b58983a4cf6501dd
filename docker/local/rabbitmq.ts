// The private RabbitMQ: own node, own epmd, own user instead of guest, loopback only.
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import amqp from 'amqplib';
import { type Engine, type EngineContext, ownName } from './engine.ts';
import type { Program } from './program.ts';

const settings = ({ ports, management, durable }: EngineContext, password: string): string =>
  [
    `listeners.tcp.1 = 127.0.0.1:${ports.amqp}`,
    ...(management
      ? ['management.tcp.ip = 127.0.0.1', `management.tcp.port = ${ports.management}`]
      : []),
    `default_user = ${ownName}`,
    `default_pass = ${password}`,
    `default_vhost = ${ownName}`,
    'default_user_tags.administrator = true',
    'heartbeat = 15',
    'vm_memory_high_watermark.absolute = 1GB',
    'disk_free_limit.absolute = 200MB',
    // The default of 512 MiB is kept in memory before it is written away.
    'raft.wal_max_size_bytes = 64000000',
    'log.file = false',
    'log.console = true',
    // A whole test run opens thousands of connections and queues, and each would be told of.
    `log.console.level = ${durable ? 'info' : 'warning'}`,
    '',
  ].join('\n');

const answers = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connectTcp(port, '127.0.0.1', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });

const logIn = async (port: number, password: string): Promise<void> => {
  // A look at the port first: amqplib needs much longer to find out that nobody is there.
  await answers(port);
  const url = `amqp://${ownName}:${password}@127.0.0.1:${port}/${ownName}`;
  const connection = await amqp.connect(url, { timeout: 2_000 });
  await connection.close();
};

const askManagement = async (port: number, password: string): Promise<void> => {
  const credentials = Buffer.from(`${ownName}:${password}`).toString('base64');
  const asked = await fetch(`http://127.0.0.1:${port}/api/vhosts`, {
    headers: { authorization: `Basic ${credentials}`, connection: 'close' },
    signal: AbortSignal.timeout(2_000),
  });
  await asked.arrayBuffer();
  if (!asked.ok) throw new Error(`management answered ${asked.status}`);
};

// Half of the cores: handing work from one scheduler to another made a quarter of what a broker of tests costs.
const fewSchedulers = (): string => {
  const few = Math.max(1, Math.floor(availableParallelism() / 2));
  return ` +S ${few}:${few}`;
};

const nodeEnvironment = (folder: string, { ports, durable }: EngineContext): NodeJS.ProcessEnv => ({
  ...process.env,
  HOME: `${folder}/home`,
  RABBITMQ_NODENAME: `${ownName}@localhost`,
  RABBITMQ_NODE_PORT: String(ports.amqp),
  RABBITMQ_DIST_PORT: String(ports.amqpDist),
  ERL_EPMD_PORT: String(ports.epmd),
  ERL_EPMD_ADDRESS: '127.0.0.1',
  RABBITMQ_MNESIA_BASE: `${folder}/data`,
  RABBITMQ_LOG_BASE: `${folder}/log`,
  RABBITMQ_CONFIG_FILE: `${folder}/rabbitmq`,
  RABBITMQ_ENABLED_PLUGINS_FILE: `${folder}/plugins`,
  RABBITMQ_CONF_ENV_FILE: '/dev/null',
  RABBITMQ_PID_FILE: `${folder}/pid`,
  // Runs the broker itself under the pid we started, without a shell around it.
  RABBITMQ_ALLOW_INPUT: 'true',
  // The three of +sbwt: idle schedulers sleep instead of spinning on a small machine.
  RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
    '-noinput -kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none' +
    (durable ? '' : fewSchedulers()),
});

/** Describes a private RabbitMQ node with its data in `<state>/rabbitmq`. */
export const createRabbitmq = (context: EngineContext): Engine => {
  const { state, data, ports, programs, management } = context;
  const folder = join(data, 'rabbitmq');
  const password = state.secret('rabbitmqPassword');
  const env = nodeEnvironment(folder, context);
  const epmd: Program = {
    name: 'epmd',
    file: programs.epmd ?? 'epmd',
    args: ['-port', String(ports.epmd), '-address', '127.0.0.1'],
    env,
    stopSignal: 'SIGTERM',
    stopWithinMs: 2_000,
    readyWithinMs: 10_000,
    ready: () => answers(ports.epmd),
  };
  const broker: Program = {
    name: 'rabbitmq',
    file: programs['rabbitmq-server'] ?? 'rabbitmq-server',
    args: [],
    env,
    stopSignal: 'SIGTERM',
    stopWithinMs: 20_000,
    readyWithinMs: 120_000,
    ready: async () => {
      await logIn(ports.amqp, password);
      if (management) await askManagement(ports.management, password);
    },
  };
  return {
    prepare: async () => {
      for (const part of ['home', 'data', 'log']) {
        mkdirSync(`${folder}/${part}`, { recursive: true });
      }
      writeFileSync(`${folder}/rabbitmq.conf`, settings(context, password), { mode: 0o600 });
      writeFileSync(`${folder}/plugins`, management ? '[rabbitmq_management].\n' : '[].\n');
    },
    programs: [epmd, broker],
  };
};
