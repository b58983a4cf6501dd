// Finds the programs we need on this machine and installs missing ones with apt-get, without leaving services behind.
import {
  accessSync,
  constants,
  existsSync,
  globSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from './processes.ts';

export type EngineName = 'mysql' | 'redis' | 'rabbitmq';
/** What only tests need: they are left out where it cannot be had. */
export type ToolName = 'chromium' | 'promtool';
type Name = EngineName | ToolName;

/** Programs by name, with their absolute paths. */
export type Programs = Record<string, string>;

type Supply = {
  title: string;
  /** Each entry is one way to have the engine: every program in it must be found. */
  ways: readonly (readonly string[])[];
  packages: readonly string[];
  /** System services that the packages bring along and that must stay off. */
  services: readonly string[];
  /** Names a server of one's own instead. */
  setting?: string;
};

// Debian's -core packages hold the programs alone, without a system service.
const supplies: Record<Name, Supply> = {
  mysql: {
    title: 'MariaDB',
    ways: [['mariadbd', 'mariadb-install-db'], ['mysqld', 'mysql_install_db'], ['mysqld']],
    packages: ['mariadb-server-core', 'mariadb-client-core'],
    services: [],
    setting: 'MYSQL_URL',
  },
  redis: {
    title: 'Redis',
    ways: [['redis-server'], ['valkey-server']],
    packages: ['redis-server'],
    services: ['redis-server'],
    setting: 'REDIS_URL',
  },
  rabbitmq: {
    title: 'RabbitMQ',
    ways: [['rabbitmq-server', 'epmd']],
    packages: ['rabbitmq-server'],
    services: ['rabbitmq-server', 'epmd.service', 'epmd.socket'],
    setting: 'AMQP_URL',
  },
  chromium: {
    title: 'Chromium',
    ways: [['chromium'], ['chromium-browser']],
    packages: ['chromium'],
    services: [],
  },
  promtool: {
    title: 'promtool',
    ways: [['promtool']],
    packages: ['prometheus'],
    services: ['prometheus'],
  },
};

const moreFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/usr/libexec'];

// Debian's /usr/sbin/rabbitmq-server switches to the user rabbitmq and its system-wide folders.
const ownPlaces: Record<string, readonly string[]> = {
  'rabbitmq-server': [
    '/usr/lib/rabbitmq/bin/rabbitmq-server',
    '/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server',
    '/opt/rabbitmq/sbin/rabbitmq-server',
    '/opt/homebrew/sbin/rabbitmq-server',
  ],
  epmd: ['/usr/bin/epmd', '/usr/lib/erlang/bin/epmd', '/usr/local/lib/erlang/bin/epmd'],
};

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

const findProgram = (name: string): string | undefined => {
  const own = ownPlaces[name];
  if (own) return own.flatMap((pattern) => globSync(pattern)).find(isProgram);
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...moreFolders];
  return folders.map((folder) => join(folder, name)).find(isProgram);
};

/** The programs of an engine or a tool, or undefined when they are not all on this machine. */
export const findPrograms = (engine: Name): Programs | undefined => {
  for (const way of supplies[engine].ways) {
    const found = way.flatMap((name) => {
      const path = findProgram(name);
      return path ? [[name, path] as const] : [];
    });
    if (found.length === way.length) return Object.fromEntries(found);
  }
  return undefined;
};

/** Thrown when something missing cannot be installed; the message says what to do instead. */
export class InstallError extends Error {}

// A mirror that is slow or drops a connection is asked again; nothing else is repeated.
const patient = ['-o', 'Acquire::Retries=3', '-o', 'Acquire::http::Timeout=30'];

type Runner = (command: string, args: readonly string[]) => Promise<string>;

const policyFile = '/usr/sbin/policy-rc.d';

// invoke-rc.d asks this file before it starts a service; 101 means "not allowed".
const policyText =
  '#!/bin/sh\n# Written while Tessera installs packages; safe to delete.\nexit 101\n';

const asRoot = async (what: string): Promise<readonly string[]> => {
  if (process.getuid?.() === 0) return [];
  if (!findProgram('sudo')) throw new InstallError(what);
  if ((await runCommand('sudo', ['-n', 'true'])).code === 0) return ['sudo', '-n'];
  if (process.stdin.isTTY) return ['sudo'];
  throw new InstallError(what);
};

// An interrupted installation leaves dpkg in need of repair, so Ctrl-C does not reach it: it has a
// session of its own, unless sudo needs the terminal to ask for a password.
const createRunner =
  (prefix: readonly string[]): Runner =>
  async (command, args) => {
    const [file = command, ...rest] = [...prefix, command, ...args];
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const asks = prefix.length > 0 && !prefix.includes('-n');
    const done = await runCommand(file, rest, { env, group: !asks });
    if (done.code === 0) return done.output;
    const tail = done.output.trimEnd().split('\n').slice(-12).join('\n    ');
    throw new InstallError(`${command} ${args[0] ?? ''} failed:\n    ${tail}`);
  };

const withoutServices = async (run: Runner, action: () => Promise<void>): Promise<void> => {
  if (existsSync(policyFile) && readFileSync(policyFile, 'utf8') !== policyText) return action();
  const direct = process.getuid?.() === 0;
  if (direct) writeFileSync(policyFile, policyText, { mode: 0o755 });
  else {
    const script = 'printf %s "$1" > "$0" && chmod 755 "$0"';
    await run('sh', ['-c', script, policyFile, policyText]);
  }
  try {
    await action();
  } finally {
    if (direct) rmSync(policyFile, { force: true });
    else await runCommand('sudo', ['-n', 'rm', '-f', policyFile]);
  }
};

// A service that was installed but not started would still come up with the next boot.
const disableServices = async (run: Runner, services: readonly string[]): Promise<void> => {
  if (!findProgram('systemctl')) return;
  for (const service of services) {
    await run('systemctl', ['disable', '--quiet', service]).catch(() => undefined);
  }
};

/**
 * Installs the missing ones of `engines` with apt-get.
 * @throws InstallError when there is no apt-get, no way to become root, or the installation fails.
 */
export const installMissing = async (
  engines: readonly Name[],
  options: { say(line: string): void; signal: AbortSignal },
): Promise<void> => {
  const missing = engines.filter((engine) => !findPrograms(engine)).map((name) => supplies[name]);
  if (missing.length === 0) return;
  const titles = missing.map(({ title }) => title).join(', ');
  const settings = missing.flatMap(({ setting }) => setting ?? []).join(', ');
  const instead = settings === '' ? '' : ` or set ${settings} to a server of yours`;
  const advice = `${titles} must be installed, which needs apt-get and root or sudo. Install it yourself${instead}.`;
  if (!findProgram('apt-get')) throw new InstallError(advice);
  const run = createRunner(await asRoot(advice));

  const packages = missing.flatMap((supply) => supply.packages);
  const hadEpmd = findProgram('epmd') !== undefined;
  const services = missing
    .flatMap((supply) => supply.services)
    .filter((service) => !(hadEpmd && service.startsWith('epmd')));
  const flags = ['-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300', ...patient];
  const install = () => run('apt-get', ['install', ...flags, ...packages]);

  options.say(`Installing ${titles} with apt-get (once; this takes a minute or two)…`);
  await withoutServices(run, async () => {
    try {
      await install();
    } catch {
      options.signal.throwIfAborted();
      await run('dpkg', ['--configure', '-a']);
      await run('apt-get', ['update', ...patient]);
      await install();
    }
  });
  await disableServices(run, services);
  options.signal.throwIfAborted();
  const still = engines.filter((engine) => !findPrograms(engine));
  if (still.length > 0) throw new InstallError(advice);
};
