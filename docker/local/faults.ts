// npm run test:faults: the fault tests, which start a stack of their own to break.
import { spawnSync } from 'node:child_process';
import { inRepository } from './test-engines.ts';

const main = inRepository('test', 'faults', 'main.ts');
const { status } = spawnSync(process.execPath, [main, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
