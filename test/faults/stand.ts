// The stack under test: what `npm start` runs, in a folder and on ports of its own, with its processes to kill.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';

export type StackFile = {
  api: string;
  sim: string;
  engines: { mysql: string; redis: string; amqp: string };
  pids: Record<string, number>;
};

export type Stand = {
  /** As it is now: processes that were started again have other pids. */
  file(): StackFile;
  kill(name: string, signal: NodeJS.Signals): number;
  /** Resolves when `name` runs under another pid than `old`. */
  back(name: string, old: number): Promise<void>;
  stop(): Promise<void>;
};

const root = resolve(import.meta.dirname, '../..');
const readyMs = 120_000;
const backMs = 60_000;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

const freePort = (): Promise<number> =>
  new Promise((done) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });

const until = async (what: string, ms: number, look: () => boolean): Promise<void> => {
  const end = Date.now() + ms;
  while (!look()) {
    if (Date.now() > end) throw new Error(`${what}: not within ${ms / 1000} s`);
    await sleep(100);
  }
};

const launch = async (folder: string): Promise<ChildProcess> => {
  const ports = { PORT: await freePort(), OPS_PORT: await freePort(), SIM_PORT: await freePort() };
  const text = Object.fromEntries(
    Object.entries(ports).map(([name, port]) => [name, String(port)]),
  );
  return spawn(process.execPath, [join(root, 'docker/local/start.ts')], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    // Receipts that never come are settled soon, so that the run need not wait for them.
    env: {
      ...process.env,
      ...text,
      TESSERA_STATE: folder,
      WHATSAPP_DELIVERY_SECONDS: '20',
      // The load is more than unverified messages of one account may cost.
      UNPAID_EXPOSURE_USD: '1000000',
      // Most of the load is never verified, which is what the guard holds.
      FRAUD_GUARD: 'shadow',
    },
  });
};

/** Starts a fresh stack under `folder`; resolves when it has verified its first code. */
export const startStand = async (folder: string): Promise<Stand> => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'stack.json');
  const child = await launch(folder);
  await until('the stack is up', readyMs, () => {
    if (child.exitCode !== null) throw new Error('the stack did not start');
    return existsSync(path);
  });
  const file = (): StackFile => JSON.parse(readFileSync(path, 'utf8')) as StackFile;
  return {
    file,
    kill: (name, signal) => {
      const pid = file().pids[name] ?? 0;
      if (pid > 0) process.kill(pid, signal);
      return pid;
    },
    back: (name, old) => until(`${name} is back`, backMs, () => file().pids[name] !== old),
    stop: async () => {
      if (child.exitCode !== null) return;
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      await ended;
    },
  };
};
