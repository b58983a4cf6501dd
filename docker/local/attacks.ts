// npm run test:attacks: bounded attacks on the stack that npm start runs.
import { spawnSync } from 'node:child_process';
import { inRepository } from './test-engines.ts';

const main = inRepository('test', 'attacks', 'main.ts');
const { status } = spawnSync(process.execPath, [main, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
