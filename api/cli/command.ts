// What a command of the command line is: a value from which the help and the reading of arguments follow.
import { parseArgs } from 'node:util';
import { plainDecimal } from '../../lib/kernel/money.ts';
import { type Answered, type Client, CommandError, exitCodes } from './client.ts';

export type Values = Record<string, string | boolean | string[] | undefined>;

export type Given = {
  client: Client;
  /** The words behind the name of the command. */
  words: readonly string[];
  values: Values;
  /** Asks a person for a word; undefined when nobody is there to answer. */
  ask(question: string): Promise<string | undefined>;
  /** Tells a person how it goes on; kept quiet with --json. */
  say(line: string): void;
};

/** `ok: false` ends the command with exit code 1 although it was carried out. */
export type Outcome = { data: Answered; text: string; ok?: boolean };

export type Command = {
  name: string;
  /** What follows the name. */
  usage: string;
  about: string;
  /** Words that must be there; more are not understood, unless they are free. */
  least?: number;
  free?: boolean;
  options?: Record<string, { type: 'string' | 'boolean'; multiple?: boolean; about: string }>;
  run(given: Given): Promise<Outcome>;
};

/** The text of an option; undefined when it was not given. */
export const textOf = (values: Values, name: string): string | undefined => {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
};

/** The number of an option. @throws CommandError when it is none */
export const numberOf = (values: Values, name: string): number | undefined => {
  const value = textOf(values, name);
  return value === undefined ? undefined : toNumber(value, `--${name}`);
};

export const toNumber = (text: string, what: string): number => {
  const number = plainDecimal(text);
  if (!Number.isNaN(number)) return number;
  throw new CommandError(`${what} must be a number, not "${text}".`, exitCodes.usage);
};

/** A path with its parameters written so that none of them can be another path. */
export const pathTo = (parts: TemplateStringsArray, ...values: string[]): string =>
  parts
    .map((part, n) => part + (n < values.length ? encodeURIComponent(values[n] ?? '') : ''))
    .join('');

/** Reads the arguments of a command. @throws CommandError about what is wrong */
export const readArguments = (command: Command, args: readonly string[]) => {
  const own = Object.entries(command.options ?? {}).map(([name, { type, multiple }]) => [
    name,
    { type, multiple: multiple ?? false },
  ]);
  try {
    const { values, positionals } = parseArgs({
      // A negative amount is no option.
      args: args.map((word) => (/^-\d/.test(word) ? `\u0000${word}` : word)),
      options: {
        ...Object.fromEntries(own),
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
      allowPositionals: true,
    });
    return {
      values: values as Values,
      words: positionals.map((word) => word.replace('\u0000', '')),
    };
  } catch (error) {
    const message = error instanceof Error ? error.message : 'these arguments are not understood';
    throw new CommandError(`${command.name}: ${message}`, exitCodes.usage);
  }
};

/** Usage and options of one command. */
export const helpOf = (command: Command): string => {
  const options = Object.entries({
    ...command.options,
    json: { type: 'boolean', about: 'prints the answer as JSON' },
  } as NonNullable<Command['options']>);
  const lines = options.map(([name, { type, about }]) => {
    const flag = type === 'string' ? `--${name} …` : `--${name}`;
    return `  ${flag.padEnd(18)} ${about}`;
  });
  return `ops ${`${command.name} ${command.usage}`.trim()}\n  ${command.about}\n\n${lines.join('\n')}\n`;
};
