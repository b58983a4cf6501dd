// Loaded by AVA before each test file: notes how long the file took when npm test asks for it.
import { appendFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const kept = process.env.TESSERA_TEST_TIMES;
const root = resolve(import.meta.dirname, '../..');

if (kept) {
  const startedAt = performance.now();
  process.on('exit', () => {
    const { user, system } = process.threadCpuUsage();
    const time = {
      file: relative(root, fileURLToPath(test.meta.file)),
      ms: Math.round(performance.now() - startedAt),
      cpuMs: Math.round((user + system) / 1_000),
    };
    // One short write per file: those of other threads and processes do not get into it.
    appendFileSync(kept, `${JSON.stringify(time)}\n`);
  });
}
