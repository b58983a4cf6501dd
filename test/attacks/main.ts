// npm run test:attacks: attacks on a running stack, with a figure and a bound for each thing they try.
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { identify, isRunning } from '../../docker/local/processes.ts';
import { stateFolder } from '../../docker/local/session.ts';
import type { Attack, RunningStack } from './attack.ts';
import { freeSends } from './free-sends.ts';
import { halfReadRequests } from './half-read-requests.ts';
import { leakedKey } from './leaked-key.ts';
import { lockout } from './lockout.ts';
import { chooseAttacks, exitCodeOf, runAttacks, tableOf } from './run.ts';
import { spreadPumping } from './spread-pumping.ts';

/** Every attack, in the order in which they run. */
const attacks: readonly Attack[] = [halfReadRequests, freeSends, leakedKey, lockout, spreadPumping];

const help = `npm run test:attacks -- [options]

Attacks the stack that npm start runs on this machine and prints what was measured beside its bound.
Exit code 1 when a figure does not hold.

  --only <names>   some of: ${attacks.map(({ name }) => name).join(', ') || '(none yet)'}
  --stack <path>   stack.json of the stack to attack (default: that of TESSERA_STATE, .local)
  --help           this text

${attacks.map(({ name, about }) => `  ${name.padEnd(22)}${about}`).join('\n')}
`;

const answeringMs = 60_000;

const answers = async ({ api }: RunningStack): Promise<boolean> => {
  try {
    return (await fetch(`${api}/health`, { signal: AbortSignal.timeout(5_000) })).ok;
  } catch {
    return false;
  }
};

const untilAnswering = async (stack: RunningStack): Promise<void> => {
  const deadline = Date.now() + answeringMs;
  while (!(await answers(stack))) {
    if (Date.now() > deadline) {
      throw new Error(`${stack.api}/health did not answer 200 within ${answeringMs / 1000} s`);
    }
    await sleep(250);
  }
};

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

const readStackAt = (path: string): RunningStack =>
  JSON.parse(readFileSync(path, 'utf8')) as RunningStack;

const run = async (path: string, only: string | undefined): Promise<number> => {
  const chosen = chooseAttacks(attacks, only);
  if (!existsSync(path)) {
    throw new Error(`No stack runs here: ${path} does not exist. Run npm start first.`);
  }
  const { api } = readStackAt(path);
  if (!(await answers(readStackAt(path)))) {
    throw new Error(`The stack of ${path} does not run: ${api}/health does not answer 200.`);
  }
  const outcomes = await runAttacks(chosen, {
    readStack: () => readStackAt(path),
    untilAnswering,
    isRunning: (pid) => isRunning(identify(pid)),
    say,
  });
  process.stdout.write(`${tableOf(outcomes)}\n`);
  return exitCodeOf(outcomes);
};

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      stack: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) process.stdout.write(help);
  else
    process.exitCode = await run(resolve(values.stack ?? stateFolder('stack.json')), values.only);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
