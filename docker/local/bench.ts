// npm run bench: the benchmarks against private engines.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const main = inRepository('test', 'bench', 'main.ts');
const args = [main, ...process.argv.slice(2)];
await runWithTestEngines({ part: 'bench', args, durable: true });
