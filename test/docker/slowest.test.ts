// The last lines of npm test: which files took longest.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { describeSlowest, readTimes } from '../../docker/local/slowest.ts';

const root = resolve(import.meta.dirname, '../..');

test('the ten slowest files are named, the slowest first, with what all of them took', (t) => {
  const lines = Array.from({ length: 12 }, (_, n) =>
    JSON.stringify({ file: `test/a${n}.test.ts`, ms: 1_000 * (n + 1), cpuMs: 500 }),
  );
  const said = describeSlowest(readTimes(`${lines.join('\n')}\n{"file":"test/cut`))?.split('\n');
  t.is(said?.length, 11);
  t.is(said?.[0], 'The slowest of 12 files: 78.0 s, of it 6.0 s of computing.');
  t.is(said?.[1], '  12.0 s (0.5 s of computing) test/a11.test.ts');
  t.is(said?.at(-1), '  3.0 s (0.5 s of computing) test/a2.test.ts');
});

test('nothing is said of one file, or of none', (t) => {
  t.is(describeSlowest([]), undefined);
  t.is(describeSlowest(readTimes('{"file":"a","ms":1,"cpuMs":1}')), undefined);
});

test('each file that AVA runs notes its time where it is asked for', async (t) => {
  const kept = join(mkdtempSync(join(tmpdir(), 'tessera-times-')), 'times');
  const cli = join(root, 'node_modules/ava/entrypoints/cli.js');
  const files = ['test/kernel/csv.test.ts', 'test/kernel/moment.test.ts'];
  const env = { ...process.env, TESSERA_TEST_TIMES: kept };
  await promisify(execFile)(process.execPath, [cli, ...files], { cwd: root, env });
  const times = readTimes(readFileSync(kept, 'utf8'));
  t.deepEqual(times.map(({ file }) => file).sort(), files);
  for (const { ms, cpuMs } of times) t.true(ms > 0 && cpuMs > 0);
});
