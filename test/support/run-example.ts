// Runs an example as its reader would: a process of its own, its settings in the environment.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const root = join(import.meta.dirname, '../..');

export type ExampleRun = { code: number | null; output: string; errors: string };

/** Runs `command` at the top of the repository to its end; `input` becomes its standard input once it resolves. */
export const runExample = async (
  [file, ...args]: [string, ...string[]],
  environment: Record<string, string>,
  input: Promise<string> | string = '',
): Promise<ExampleRun> => {
  const child = spawn(file, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  // A process that ends without reading its input is no fault of the test.
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close') as Promise<[number | null]>;
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  child.stdin.end(await input);
  const [[code], [stdout, stderr]] = await Promise.all([ended, output]);
  return { code, output: stdout, errors: stderr };
};
