// The command line as a function: words in, text and exit code out.
import { accountCommands } from './account-commands.ts';
import { CommandError, createClient, exitCodes, findListener } from './client.ts';
import { type Command, type Given, helpOf, readArguments } from './command.ts';
import { platformCommands } from './platform-commands.ts';
import { queueCommands } from './queue-commands.ts';

const commands: readonly Command[] = [...queueCommands, ...platformCommands, ...accountCommands];

export type Surroundings = Pick<Given, 'ask' | 'say'> & {
  env: Record<string, string | undefined>;
};

export type Ended = { exitCode: number; out: string; err: string };

const overview = (): string => {
  const lines = commands.map(
    ({ name, usage, about }) => `  ${`${name} ${usage}`.padEnd(34)} ${about}`,
  );
  return `npm run ops -- COMMAND [--json] [--help]

${lines.join('\n')}

The listener is OPS_URL (http://127.0.0.1:OPS_PORT) with OPS_TOKEN; without OPS_TOKEN the local stack's.
Exit codes: 0 done, 1 refused or not so, 2 not understood, 3 not reached or token refused.
In scripts: npm run --silent ops -- queues --json
`;
};

/** The command that the words begin with; names of two words come first. */
const commandOf = (
  args: readonly string[],
): { command: Command; rest: readonly string[] } | undefined => {
  // "dead redrive" is what people try after "dead list".
  const words = args[0] === 'dead' && args[1] !== 'list' ? args.slice(1) : args;
  for (const command of commands) {
    const name = command.name.split(' ');
    if (name.every((word, n) => words[n] === word))
      return { command, rest: words.slice(name.length) };
  }
  return undefined;
};

const carryOut = async (
  command: Command,
  rest: readonly string[],
  { env, ask, say }: Surroundings,
): Promise<Ended> => {
  const { values, words } = readArguments(command, rest);
  if (values.help === true) return { exitCode: exitCodes.done, out: helpOf(command), err: '' };
  const least = command.least ?? 0;
  if (words.length < least) return { exitCode: exitCodes.usage, out: '', err: helpOf(command) };
  const [surplus] = command.free ? [] : words.slice(least);
  if (surplus !== undefined) {
    throw new CommandError(`${command.name}: "${surplus}" is too much.`, exitCodes.usage);
  }
  const quiet = values.json === true;
  const client = createClient(findListener(env));
  const {
    data,
    text,
    ok = true,
  } = await command.run({
    ...{ client, words, values, ask },
    say: quiet ? () => undefined : say,
  });
  const out = quiet ? `${JSON.stringify(data, null, 2)}\n` : text;
  return { exitCode: ok ? exitCodes.done : exitCodes.refused, out, err: '' };
};

/** Runs what `args` say; never throws. */
export const runCommandLine = async (
  args: readonly string[],
  surroundings: Surroundings,
): Promise<Ended> => {
  const [first] = args;
  if (first === undefined || ['--help', '-h', 'help'].includes(first)) {
    return { exitCode: exitCodes.done, out: overview(), err: '' };
  }
  const found = commandOf(args);
  if (!found) {
    const err = `There is no command "${first}".\n\n${overview()}`;
    return { exitCode: exitCodes.usage, out: '', err };
  }
  try {
    return await carryOut(found.command, found.rest, surroundings);
  } catch (error) {
    if (error instanceof CommandError) {
      return { exitCode: error.exitCode, out: '', err: `${error.message}\n` };
    }
    throw error;
  }
};
