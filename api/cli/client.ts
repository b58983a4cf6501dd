// The ops listener as the command line calls it: where it is, with which token, and what its answers mean.
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';

/** How a command ends; the exit code is the number. */
export const exitCodes = { done: 0, refused: 1, usage: 2, unreachable: 3 } as const;

/** Ends the command with a message for people. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.refused) {
    super(message);
    this.exitCode = exitCode;
  }
}

export type Answered = Record<string, unknown>;

export type Client = {
  get(path: string): Promise<Answered>;
  post(path: string, body?: object): Promise<Answered>;
};

type Env = Record<string, string | undefined>;
type Place = { url: string; token: string };

/** The listener the environment names, else the one of the local stack that runs here. @throws CommandError */
export const findListener = (env: Env): Place => {
  if (env.OPS_TOKEN) {
    const port = env.OPS_PORT || '8081';
    const url = (env.OPS_URL || `http://127.0.0.1:${port}`).replace(/\/+$/, '');
    return { url, token: env.OPS_TOKEN };
  }
  if (env.OPS_URL) {
    throw new CommandError('OPS_URL is set and OPS_TOKEN is not.', exitCodes.unreachable);
  }
  const file = join(env.TESSERA_STATE || '.local', 'stack.json');
  try {
    const stack = JSON.parse(readFileSync(file, 'utf8')) as { ops?: string; ops_token?: string };
    if (stack.ops && stack.ops_token) return { url: stack.ops, token: stack.ops_token };
  } catch {
    // No stack runs here.
  }
  throw new CommandError(
    `OPS_TOKEN is not set, and no local stack runs here (${file}).`,
    exitCodes.unreachable,
  );
};

/** Who stands in the audit log, in letters that a header takes; a user of a container may have no name. */
const actorOf = (): string => {
  try {
    const { username } = userInfo();
    const written = username.normalize('NFKD').replace(/[^\w .@+-]/g, '');
    return written.slice(0, 60).trim() || 'command line';
  } catch {
    return 'command line';
  }
};

const patienceMs = 60_000;

type Refusal = { code?: string; message?: string; details?: { field: string; issue: string }[] };

const tell = ({ code, message, details }: Refusal): string =>
  [
    `${code ?? 'error'}: ${message ?? 'the listener refused'}`,
    ...(details ?? []).map(({ field, issue }) => `  ${field} ${issue}`),
  ].join('\n');

const readAnswer = async (answer: Response): Promise<Answered> => {
  const { data, error } = (await answer.json().catch(() => ({}))) as {
    data?: Answered;
    error?: Refusal;
  };
  if (answer.ok && data) return data;
  const code = answer.status === 401 ? exitCodes.unreachable : exitCodes.refused;
  throw new CommandError(tell(error ?? { message: `it answered ${answer.status}` }), code);
};

/** Calls below /ops/api; every error is a CommandError. */
export const createClient = ({ url, token }: Place): Client => {
  const call = async (method: string, path: string, body?: object): Promise<Answered> => {
    const answer = await fetch(`${url}/ops/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'x-ops-actor': actorOf(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patienceMs),
    }).catch(() => {
      throw new CommandError(`Nobody answers at ${url}.`, exitCodes.unreachable);
    });
    return readAnswer(answer);
  };
  return {
    get: (path) => call('GET', path),
    post: (path, body = {}) => call('POST', path, body),
  };
};
