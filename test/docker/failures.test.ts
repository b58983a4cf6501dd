// The end of a long log: every failure is named once more, however AVA's output was cut into pieces.
import test from 'ava';
import { createFailures, describeEnd } from '../../docker/local/failures.ts';

const output = `
  ✔ api › keys › a key is made
  ✘ [fail]: api › keys › a key is made twice Error: ✘ no such key
  \u001b[31m✘\u001b[39m [fail]: links › store › a chat is linked
    ℹ what was seen: ✔

✘ Timed out while running tests

2 tests were pending in test/ops/cli.test.ts

◌ ops › cli › tables stand in columns

Failed to exit when running test/ops/queues.test.ts
Uncaught exception in test/api/auth.test.ts
  ✘ test/api/auth.test.ts exited with a non-zero exit code: 1
  ✘ [fail]: api › keys › a key is made twice Error: ✘ no such key
`;

const named = [
  '✘ [fail]: api › keys › a key is made twice Error: ✘ no such key',
  '✘ [fail]: links › store › a chat is linked',
  '✘ Timed out while running tests',
  '◌ ops › cli › tables stand in columns',
  'Failed to exit when running test/ops/queues.test.ts',
  'Uncaught exception in test/api/auth.test.ts',
  '✘ test/api/auth.test.ts exited with a non-zero exit code: 1',
];

test('what failed is named once, in order, and nothing that passed', (t) => {
  for (const size of [1, 7, 10_000]) {
    const failures = createFailures();
    for (let at = 0; at < output.length; at += size) failures.take(output.slice(at, at + size));
    t.deepEqual(failures.list(), named);
  }
});

test('the last words name the failures, or say where to look', (t) => {
  t.is(describeEnd(0, [], 200), 'The suite passed in 200 s.');
  t.is(
    describeEnd(1, named.slice(0, 2), 9),
    `The suite failed after 9 s (exit code 1):\n  ${named[0]}\n  ${named[1]}`,
  );
  t.regex(describeEnd(137, [], 9), /exit code 137\):\n {2}No test is named/);
});
