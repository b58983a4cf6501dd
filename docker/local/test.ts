// npm test: the whole test suite against private engines; arguments go to AVA.
import { inRepository, runWithTestEngines } from './test-engines.ts';

const ava = inRepository('node_modules', 'ava', 'entrypoints', 'cli.js');
await runWithTestEngines('test', [ava, ...process.argv.slice(2)], ['chromium', 'promtool']);
