// Loads every module the processes run, so that Node's compile cache (NODE_COMPILE_CACHE) holds it all: a process
// that finds its modules there starts sooner, and never loads the type stripper, which stays in memory for good.
import { flushCompileCache } from 'node:module';

await Promise.all([
  import('../lib/app.ts'),
  import('../api/listen.ts'),
  import('../api/docs/build.ts'),
  import('../workers/run.ts'),
  import('../workers/workers.ts'),
]);
flushCompileCache();
process.exit(0);
