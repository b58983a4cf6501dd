// node docker/local/run.mjs engines: test engines that stay up, for running single tests again and again.
import { once } from 'node:events';
import { engineProcesses } from './engines.ts';
import { runSession, stateFolder } from './session.ts';
import { startTestEngines } from './test-engines.ts';

const options = {
  folder: stateFolder('engines'),
  disposable: true,
  stopOrder: engineProcesses,
  stoppedCode: 0,
};

await runSession(options, async (session) => {
  const engines = await startTestEngines(session, true);
  const lines = Object.entries(engines).map(([name, value]) => `export ${name}='${value}'\n`);
  process.stdout.write(lines.join(''));
  session.say('Ready. Ctrl-C ends the engines and throws their data away.');
  const alive = setInterval(() => undefined, 60_000);
  if (!session.signal.aborted) await once(session.signal, 'abort');
  clearInterval(alive);
  return 0;
});
