// npm test: the whole test suite against private engines; arguments go to AVA.
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { createFailures, describeEnd } from './failures.ts';
import { stateFolder } from './session.ts';
import { describeSlowest, readTimes } from './slowest.ts';
import { inRepository, type Listener, runWithTestEngines } from './test-engines.ts';

const log = stateFolder('test.log');
const times = stateFolder('test-times.jsonl');
mkdirSync(dirname(log), { recursive: true });
for (const file of [log, times]) writeFileSync(file, '');

/** Says which files took longest, on a terminal too. */
const tellSlowest = (): void => {
  const said = describeSlowest(readTimes(readFileSync(times, 'utf8')));
  if (said === undefined) return;
  appendFileSync(log, `\n${said}\n`);
  process.stderr.write(`\n${said}\n`);
};

/** Keeps the log, and names what failed once more at its end. */
const createReport = (): Listener => {
  const startedAt = performance.now();
  const failures = createFailures();
  return {
    take: (text) => {
      appendFileSync(log, text);
      failures.take(text);
    },
    end: (code) => {
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      const said = `\n${describeEnd(code, failures.list(), seconds)}\n`;
      appendFileSync(log, said);
      process.stderr.write(`${said}The whole output is in ${log}.\n`);
    },
  };
};

const ava = inRepository('node_modules', 'ava', 'entrypoints', 'cli.js');
const given = process.argv.slice(2);
// Files mostly wait for engines and simulators: three of them keep two cores busy, more only get in each other's way.
const chosen = given.some((arg) => /^(-c|-s|--concurrency|--serial)/.test(arg));
const concurrency = chosen ? [] : [`--concurrency=${Math.ceil(1.5 * availableParallelism())}`];
await runWithTestEngines({
  part: 'test',
  args: [ava, ...concurrency, ...given],
  tools: ['chromium', 'promtool'],
  durable: false,
  // Each file loads a thousand modules into a thread of its own: compiled once, that takes half the time.
  env: {
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || stateFolder('compile-cache'),
    TESSERA_TEST_TIMES: times,
  },
  beforeEnd: tellSlowest,
  // On a terminal AVA itself shows what is going on.
  ...(process.stdout.isTTY ? {} : { listener: createReport() }),
});
