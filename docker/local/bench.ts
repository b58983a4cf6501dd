// npm run bench: the benchmarks against private engines.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const main = inRepository('test', 'bench', 'main.ts');
await runWithTestEngines('bench', [main, ...process.argv.slice(2)]);
