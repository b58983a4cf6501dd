// npm run test:faults: the fault tests against private engines.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const main = inRepository('test', 'faults', 'main.ts');
await runWithTestEngines('faults', [main, ...process.argv.slice(2)]);
