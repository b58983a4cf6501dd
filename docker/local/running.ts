// The settings of the stack that runs in the state folder, for commands beside it.
import { existsSync, readFileSync } from 'node:fs';
import { buildEnvironment } from './environment.ts';
import { stateFolder } from './session.ts';
import type { State } from './state.ts';
import type { Stack } from './summary.ts';

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, 'utf8')) as T;

const portOf = (url: string | null): number => Number(url ? new URL(url).port : 0);

/** What its processes were started with, or undefined when none runs here. */
export const runningEnvironment = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv | undefined => {
  const [summary, kept] = [stateFolder('stack.json'), stateFolder('secrets.json')];
  if (!existsSync(summary) || !existsSync(kept)) return undefined;
  const stack = readJson<Stack>(summary);
  const secrets = readJson<Record<string, string>>(kept);
  const state = { folder: stateFolder(), secret: (name: string) => secrets[name] ?? '' };
  return buildEnvironment({
    env,
    state: state as State,
    doors: { api: portOf(stack.api), ops: portOf(stack.ops), sim: portOf(stack.sim) },
    engines: { management: undefined, ...stack.engines },
  });
};
