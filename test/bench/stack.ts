// Everything that is measured, as processes of their own: the simulators, the bare pair, and the product as people run it.
import { join, resolve } from 'node:path';
import { buildEnvironment } from '../../docker/local/environment.ts';
import { type LogFile, tailOf } from '../../docker/local/logs.ts';
import { reservePorts } from '../../docker/local/ports.ts';
import { nodeSettings, precompile } from '../../docker/local/precompile.ts';
import { runCommand } from '../../docker/local/processes.ts';
import { type ProcfileLine, readProcfile } from '../../docker/local/procfile.ts';
import type { Program } from '../../docker/local/program.ts';
import { serviceProgram, simulatorProgram } from '../../docker/local/services.ts';
import type { Session } from '../../docker/local/session.ts';
import type { Places } from './engines.ts';
import { allHosts } from './webhook-hosts.ts';

const root = resolve(import.meta.dirname, '../..');
const procfile = readProcfile(join(root, 'Procfile'));

/** The processes of the product by name. */
export const productNames: readonly string[] = procfile.processes.map(({ name }) => name);
export const bareNames: readonly string[] = ['bare-api', 'bare-worker'];

export type Ports = { api: number; ops: number; sim: number; bare: number };

const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ'];

/** The environment of all processes: production settings, and nothing that happens to be set in this shell. */
export const makeEnvironment = async (
  { state }: Session,
  places: Places,
): Promise<{ env: NodeJS.ProcessEnv; ports: Ports }> => {
  const names = ['api', 'ops', 'sim', 'bare'] as const;
  const ports = await reservePorts(names, state.at('ports.json'));
  const { product, bare } = places;
  const env = buildEnvironment({
    env: Object.fromEntries(inherited.map((name) => [name, process.env[name] ?? ''])),
    state,
    doors: ports,
    engines: { ...product, management: undefined },
  });
  return {
    ports,
    env: {
      ...env,
      NODE_ENV: 'production',
      // Hardly anybody verifies here: the guard counts as it does in production, and refuses nothing.
      FRAUD_GUARD: 'shadow',
      // Nor is anything bounded by what unverified messages cost.
      UNPAID_EXPOSURE_USD: '1000000',
      // The visitors of the storm of logins are told apart by the address that a proxy would name.
      TRUSTED_PROXIES: '1',
      WEBHOOK_ALLOWED_HOSTS: allHosts(),
      KEY_PREFIX: product.prefix,
      BARE_KEY_PREFIX: bare.prefix,
      BARE_AMQP_URL: bare.amqp,
      BARE_MYSQL_URL: bare.mysql,
      BARE_PORT: String(ports.bare),
    },
  };
};

const saysReady = async (log: LogFile): Promise<void> => {
  if (!tailOf(log, 20).some((line) => line.includes('"msg":"ready"'))) {
    throw new Error('it has not reported ready');
  }
};

/** Node's own settings of a process of the product. @throws Error when there is none of that name */
export const settingsOf = (name: string): string[] => {
  const line = procfile.processes.find((one) => one.name === name);
  if (!line) throw new Error(`the Procfile has no ${name}`);
  return nodeSettings(line);
};

const bareProgram = (name: string, env: NodeJS.ProcessEnv): Program => ({
  ...{ name, env, cwd: root, file: process.execPath },
  // As the product's processes start: a heap of the same bounds.
  args: [...procfile.processes.slice(0, 1).flatMap(nodeSettings), `test/bench/${name}.ts`],
  stopSignal: 'SIGTERM',
  stopWithinMs: 5_000,
  readyWithinMs: 30_000,
  ready: saysReady,
});

const profiled = (line: ProcfileLine, folder: string): ProcfileLine => ({
  ...line,
  args: ['--cpu-prof', `--cpu-prof-dir=${folder}`, ...line.args],
});

/** Brings the product's database to the newest schema. @throws Error with what the migration said */
export const migrate = async ({ signal }: Session, env: NodeJS.ProcessEnv): Promise<void> => {
  if (!procfile.release) return;
  const { args } = procfile.release;
  const done = await runCommand(process.execPath, args, { cwd: root, env, signal, group: true });
  if (done.code !== 0) throw new Error(`Migrating the database failed:\n${done.output}`);
};

/** Fills Node's compile cache, as the local stack and the image do. */
export const precompileAll = ({ signal }: Session, env: NodeJS.ProcessEnv): Promise<void> =>
  precompile({ root, env, signal, processes: procfile.processes });

/** Starts all processes; `profile` names those of the product's to profile. @throws StartError */
export const startProcesses = async (
  { supervisor, state }: Session,
  env: NodeJS.ProcessEnv,
  profile: readonly string[],
): Promise<void> => {
  if (!profile.every((name) => productNames.includes(name))) {
    throw new Error(`--profile takes ${productNames.join(', ')}.`);
  }
  const lines = procfile.processes.map((line) =>
    profile.includes(line.name) ? profiled(line, state.at('logs')) : line,
  );
  const given = { root, env };
  await Promise.all([
    supervisor.start(simulatorProgram(given)),
    ...bareNames.map((name) => supervisor.start(bareProgram(name, env))),
    ...lines.map((line) => supervisor.start(serviceProgram(line, given))),
  ]);
};

/** Starts one process of the product again. */
export const startProcess = async (
  { supervisor }: Session,
  env: NodeJS.ProcessEnv,
  name: string,
): Promise<void> => {
  const line = procfile.processes.find((one) => one.name === name);
  if (!line) throw new Error(`the Procfile has no ${name}`);
  await supervisor.start(serviceProgram(line, { root, env }));
};

/** Ends all processes, those that take requests first. */
export const stopProcesses = async ({ supervisor }: Session): Promise<void> => {
  await supervisor.stop(['sim', ...bareNames]);
  await supervisor.stop(productNames);
};
