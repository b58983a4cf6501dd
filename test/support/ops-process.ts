// The ops listener as a process of its own, to be killed.
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { opsToken } from './settings.ts';

const main = resolve(import.meta.dirname, '../../api/ops/main.ts');

export type OpsProcess = {
  post(path: string, body: object): Promise<{ run: { id: string } }>;
  get(path: string): Promise<Record<string, unknown>>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
};

/** Starts it with the environment of a stack; resolves when it listens. */
export const startOpsProcess = async (env: Record<string, string>): Promise<OpsProcess> => {
  const child = spawn(process.execPath, [main], {
    env: { ...env, PATH: process.env.PATH ?? '', LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  const port = await new Promise<number>((found, failed) => {
    child.once('exit', () => failed(new Error('the ops process did not start')));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said = JSON.parse(line) as { msg?: string; port?: number };
      if (said.msg === 'ready' && said.port) found(said.port);
    });
  });
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/ops/api${path}`, {
      method,
      headers: { authorization: `Bearer ${opsToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { data, error } = (await answer.json()) as { data: never; error?: { message: string } };
    if (!answer.ok) throw new Error(`${path}: ${error?.message}`);
    return data;
  };
  return {
    post: (path, body) => call('POST', path, body),
    get: (path) => call('GET', path),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};
