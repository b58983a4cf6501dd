// npm run bench:reports: what logs and analytics cost with millions of messages, against private engines.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const main = inRepository('test', 'bench', 'reports.ts');
await runWithTestEngines('bench-reports', [main, ...process.argv.slice(2)]);
