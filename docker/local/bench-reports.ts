// npm run bench:reports: what logs and analytics cost with millions of messages, against private engines.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const main = inRepository('test', 'bench', 'reports.ts');
const args = [main, ...process.argv.slice(2)];
await runWithTestEngines({ part: 'bench-reports', args, durable: true });
