// The ops listener of a stack under test, and a client that holds its token.
import { listenOps } from '../../api/ops/listen.ts';
import { type Log, silentLog } from '../../lib/kernel/log.ts';
import { createOpsApp, type OpsApp } from '../../lib/ops-app.ts';
import { opsToken } from './settings.ts';
import type { Stack } from './stack.ts';

export type OpsAnswer = {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  data: any;
  error: { code?: string; message?: string; details?: { field: string; issue: string }[] };
  text: string;
};

export type Ops = {
  app: OpsApp;
  url: string;
  get(path: string): Promise<OpsAnswer>;
  post(path: string, body?: unknown): Promise<OpsAnswer>;
  call(path: string, init?: RequestInit): Promise<OpsAnswer>;
  close(): Promise<void>;
};

const parse = (text: string): { data?: unknown; error?: OpsAnswer['error'] } => {
  try {
    return JSON.parse(text) as { data?: unknown; error?: OpsAnswer['error'] };
  } catch {
    return {};
  }
};

/** Starts the ops process of a stack, in this process. */
export const startOps = async (
  stack: Pick<Stack, 'config'> & { api: Pick<Stack['api'], 'clock'> },
  settings: Partial<OpsApp['config']> = {},
  log: Log = silentLog,
): Promise<Ops> => {
  const { clock } = stack.api;
  const config = { ...stack.config, ...settings };
  const app = await createOpsApp({ config, log, processName: 'ops', clock });
  const listening = await listenOps(app);
  const url = `http://127.0.0.1:${listening.port}`;
  const call: Ops['call'] = async (path, init = {}) => {
    const answer = await fetch(url + path, { redirect: 'manual', ...init });
    const text = await answer.text();
    const { data, error = {} } = parse(text);
    return { status: answer.status, headers: answer.headers, data, error, text };
  };
  const held = { authorization: `Bearer ${opsToken}`, 'x-ops-actor': 'Tester' };
  return {
    ...{ app, url, call },
    get: (path) => call(path, { headers: held }),
    post: (path, body = {}) =>
      call(path, {
        method: 'POST',
        headers: { ...held, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    close: async () => {
      await listening.close();
      await app.close();
    },
  };
};
