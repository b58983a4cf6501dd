// The processes of Tessera itself as programs: the lines of the Procfile, and the simulators.
import type { LogFile } from './logs.ts';
import { tailOf } from './logs.ts';
import type { ProcfileLine } from './procfile.ts';
import type { Program } from './program.ts';

const readyWithinMs = 60_000;
const askMs = 2_000;

/** Asks `url` once; resolves when the answer is a success, throws otherwise. */
export const answersAt = async (
  url: string,
  headers: Record<string, string> = {},
): Promise<void> => {
  const answer = await fetch(url, { headers, signal: AbortSignal.timeout(askMs) });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
};

// A worker listens on no port; it writes this line when it consumes its queues.
const saysReady = async (log: LogFile): Promise<void> => {
  const ready = tailOf(log, 200).some((line) => line.includes('"msg":"ready"'));
  if (!ready) throw new Error('it has not reported ready');
};

// The log carries no such line when its level is above info.
const logsReady = (level: string | undefined): boolean =>
  level === undefined || level === 'info' || level === 'debug';

const opsHeaders = ({ env }: { env: NodeJS.ProcessEnv }) => ({
  authorization: `Bearer ${env.OPS_TOKEN}`,
});

const engines = ['mysql', 'redis', 'rabbitmq'];

const nodeProgram = (
  given: { name: string; args: readonly string[]; root: string; env: NodeJS.ProcessEnv },
  ready: Program['ready'],
): Program => ({
  name: given.name,
  file: process.execPath,
  args: given.args,
  env: given.env,
  cwd: given.root,
  stopSignal: 'SIGTERM',
  stopWithinMs: (Number(given.env.SHUTDOWN_SECONDS) || 25) * 1000 + 3_000,
  readyWithinMs,
  ready,
});

/** The program of a line of the Procfile. */
export const serviceProgram = (
  line: ProcfileLine,
  given: { root: string; env: NodeJS.ProcessEnv },
): Program => {
  const worker = logsReady(given.env.LOG_LEVEL) ? saysReady : async () => undefined;
  const listeners: Record<string, Program['ready']> = {
    api: () => answersAt(`http://127.0.0.1:${given.env.PORT}/health`),
    ops: () =>
      answersAt(`http://127.0.0.1:${given.env.OPS_PORT}/ops/api/session`, opsHeaders(given)),
  };
  const ready = listeners[line.name] ?? worker;
  return { ...nodeProgram({ ...line, ...given }, ready), needs: engines };
};

/** The provider simulators. */
export const simulatorProgram = (given: { root: string; env: NodeJS.ProcessEnv }): Program =>
  nodeProgram({ name: 'sim', args: ['test/simulators/main.ts'], ...given }, () =>
    answersAt(`http://127.0.0.1:${given.env.SIM_PORT}/stats`),
  );
