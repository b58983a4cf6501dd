// Runs an example as its reader would: a process of its own, its settings in the environment.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

const root = join(import.meta.dirname, '../..');

const start = (
  [file, ...args]: [string, ...string[]],
  environment: Record<string, string>,
): ChildProcessWithoutNullStreams =>
  // `node` is the one the tests run on, whatever PATH has.
  spawn(file === 'node' ? process.execPath : file, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...environment },
  });

export type ExampleRun = { code: number | null; output: string; errors: string };

/** Runs `command` at the top of the repository to its end; `input` becomes its standard input once it resolves. */
export const runExample = async (
  command: [string, ...string[]],
  environment: Record<string, string>,
  input: Promise<string> | string = '',
): Promise<ExampleRun> => {
  const child = start(command, environment);
  // A process that ends without reading its input is no fault of the test.
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close') as Promise<[number | null]>;
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  child.stdin.end(await input);
  const [[code], [stdout, stderr]] = await Promise.all([ended, output]);
  return { code, output: stdout, errors: stderr };
};

export type ExampleServer = { lines: string[]; port: number; stop(): Promise<void> };

/** Starts an example that serves; resolves once it has printed the port it listens on. */
export const serveExample = async (
  command: [string, ...string[]],
  environment: Record<string, string>,
): Promise<ExampleServer> => {
  const child = start(command, { ...environment, PORT: '0' });
  const lines: string[] = [];
  const output = createInterface({ input: child.stdout });
  output.on('line', (line) => lines.push(line));
  const ended = once(child, 'close');
  const errors = text(child.stderr);
  await Promise.race([once(output, 'line'), ended]);
  const port = /listening on port (\d+)/.exec(lines[0] ?? '')?.[1];
  if (port === undefined) throw new Error(`the example did not start: ${await errors}`);
  const stop = async () => {
    child.kill();
    await ended;
  };
  return { lines, port: Number(port), stop };
};
