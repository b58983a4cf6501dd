// The engines the tests, benchmarks and fault tests run against: disposable, apart from those of npm start.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
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

/** Starts disposable engines and names them as the tests expect them; benchmarks want them `durable`. */
export const startTestEngines = async (
  session: Session,
  durable: boolean,
): Promise<TestEnvironment> => {
  const options = { env: {}, forTests: true, durable };
  const { urls: engines, ready } = await startEngines(session, options);
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

/** Takes part in what a program says, and has the last word. */
export type Listener = { take(text: string): void; end(code: number): void };

const passOn = (from: Readable | null, to: NodeJS.WriteStream, listener?: Listener): void => {
  from?.setEncoding('utf8').on('data', (text: string) => {
    to.write(text);
    listener?.take(text);
  });
};

const runInForeground = (
  { args, listener, beforeEnd }: Pick<TestRun, 'args' | 'listener' | 'beforeEnd'>,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<number> =>
  new Promise((done, fail) => {
    const output = listener ? 'pipe' : 'inherit';
    const child = spawn(process.execPath, args, {
      ...{ cwd: root, env },
      stdio: ['inherit', output, output],
    });
    passOn(child.stdout, process.stdout, listener);
    passOn(child.stderr, process.stderr, listener);
    signal.addEventListener('abort', () => child.kill('SIGTERM'));
    child.on('error', fail);
    child.on('close', (exitCode, ending) => {
      const code = exitCode ?? 128 + (ending ? constants.signals[ending] : 0);
      beforeEnd?.();
      listener?.end(code);
      done(code);
    });
  });

export type TestRun = {
  /** Folder of the engines inside the state folder. */
  part: string;
  /** Script and arguments for Node. */
  args: readonly string[];
  /** Programs beside the engines; without one its tests are left out, and that is said. */
  tools?: readonly ToolName[];
  /** Whether the engines force what they write to the disk, as they do for users. */
  durable: boolean;
  /** Added to the environment. */
  env?: NodeJS.ProcessEnv;
  /** Is called when the program has ended, before the listener's last word. */
  beforeEnd?: () => void;
  /** Hears the output, which then does not go to a terminal directly. */
  listener?: Listener;
};

/**
 * Runs a program of the repository with test engines and leaves with its exit code.
 * Uses the engines named by the four TESSERA_TEST_… variables when all are set.
 */
export const runWithTestEngines = async (run: TestRun): Promise<void> => {
  const { part, tools = [], durable } = run;
  if (variables.every((name) => process.env[name])) {
    const never = new AbortController().signal;
    process.exit(await runInForeground(run, { ...process.env, ...run.env }, never));
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
      const engines = await startTestEngines(session, durable);
      return runInForeground(run, { ...process.env, ...run.env, ...engines }, session.signal);
    },
  );
};

/** Path of a program inside the repository. */
export const inRepository = (...parts: string[]): string => join(root, ...parts);
