// The engines the tests, benchmarks and fault tests run against: disposable, apart from those of npm start.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { engineProcesses, startEngines } from './engines.ts';
import { InstallError, installMissing, type ToolName } from './packages.ts';
import { runSession, type Session, stateFolder } from './session.ts';

const variables = [
  'TESSERA_TEST_MYSQL_URL',
  'TESSERA_TEST_REDIS_URL',
  'TESSERA_TEST_AMQP_URL',
  'TESSERA_TEST_RABBIT_MANAGEMENT_URL',
] as const;

export type TestEnvironment = Record<(typeof variables)[number], string>;

/** Starts disposable engines and names them as the tests expect them. */
export const startTestEngines = async (session: Session): Promise<TestEnvironment> => {
  const { urls: engines, ready } = await startEngines(session, { env: {}, forTests: true });
  await Promise.all(Object.values(ready));
  return {
    TESSERA_TEST_MYSQL_URL: engines.mysql.replace(/[^/]*$/, ''),
    TESSERA_TEST_REDIS_URL: engines.redis,
    TESSERA_TEST_AMQP_URL: engines.amqp,
    TESSERA_TEST_RABBIT_MANAGEMENT_URL: engines.management ?? '',
  };
};

const installTools = async (session: Session, tools: readonly ToolName[]): Promise<void> => {
  for (const tool of tools) {
    await installMissing([tool], session).catch((error: unknown) => {
      if (!(error instanceof InstallError)) throw error;
      session.say(`${error.message} Its tests are left out.`);
    });
  }
};

const root = resolve(import.meta.dirname, '../..');

const runInForeground = (
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<number> =>
  new Promise((done, fail) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env });
    signal.addEventListener('abort', () => child.kill('SIGTERM'));
    child.on('error', fail);
    child.on('exit', (code, ending) =>
      done(code ?? 128 + (ending ? constants.signals[ending] : 0)),
    );
  });

/**
 * Runs a program of the repository with test engines and leaves with its exit code.
 * Uses the engines named by the four TESSERA_TEST_… variables when all are set.
 * @param part folder of the engines inside the state folder
 * @param args script and arguments for Node
 * @param tools programs beside the engines; without one its tests are left out, and that is said
 */
export const runWithTestEngines = async (
  part: string,
  args: readonly string[],
  tools: readonly ToolName[] = [],
): Promise<void> => {
  if (variables.every((name) => process.env[name])) {
    const never = new AbortController().signal;
    process.exit(await runInForeground(args, process.env, never));
  }
  await runSession(
    {
      folder: stateFolder(part),
      orNext: true,
      disposable: true,
      stopOrder: engineProcesses,
      stoppedCode: 130,
    },
    async (session) => {
      await installTools(session, tools);
      const engines = await startTestEngines(session);
      return runInForeground(args, { ...process.env, ...engines }, session.signal);
    },
  );
};

/** Path of a program inside the repository. */
export const inRepository = (...parts: string[]): string => join(root, ...parts);
