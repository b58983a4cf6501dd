// Process entry of `npm run ops`.
import { createInterface } from 'node:readline/promises';
import { runCommandLine } from './run.ts';

const ask = async (question: string): Promise<string | undefined> => {
  if (!process.stdin.isTTY) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
};

// On a terminal a line that goes on is written over; elsewhere only the result counts.
const say = (line: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r${line}  `);
};

// Whoever reads has read enough (`| head`): that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const { exitCode, out, err } = await runCommandLine(process.argv.slice(2), {
  ...{ env: process.env, ask, say },
});
if (process.stderr.isTTY) process.stderr.write('\r');
process.stdout.write(out);
process.stderr.write(err);
process.exitCode = exitCode;
