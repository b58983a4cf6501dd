// npm start: the whole of Tessera on this machine, with private engines, simulated providers and a demo account.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chooseDoors } from './doors.ts';
import { type Engines, engineProcesses, startEngines } from './engines.ts';
import { buildEnvironment } from './environment.ts';
import { precompile } from './precompile.ts';
import { runCommand } from './processes.ts';
import { readProcfile } from './procfile.ts';
import { runSelfCheck } from './self-check.ts';
import { serviceProgram, simulatorProgram } from './services.ts';
import { runSession, type Session, stateFolder } from './session.ts';
import { type Demo, describeStack, printStack, type Stack } from './summary.ts';

const root = resolve(import.meta.dirname, '../..');
const stackFile = 'stack.json';
const startedAt = Date.now();
const procfile = readProcfile(join(root, 'Procfile'));

const runToEnd = async (
  { signal }: Session,
  given: { what: string; args: readonly string[]; env: NodeJS.ProcessEnv },
): Promise<string> => {
  const options = { cwd: root, env: given.env, signal, group: true };
  const done = await runCommand(process.execPath, given.args, options);
  if (done.code !== 0) {
    const tail = done.output.trimEnd().split('\n').slice(-20).join('\n    ');
    throw new Error(`${given.what} failed (exit code ${done.code}):\n    ${tail}`);
  }
  return done.output;
};

const migrate = async (session: Session, env: NodeJS.ProcessEnv): Promise<void> => {
  if (!procfile.release) return;
  await runToEnd(session, { what: 'Migrating the database', args: procfile.release.args, env });
};

const seed = async (session: Session, env: NodeJS.ProcessEnv): Promise<Demo> => {
  const what = 'Making the demo account';
  const output = await runToEnd(session, { what, args: ['docker/local/seed.ts'], env });
  const json = output.split('\n').findLast((line) => line.startsWith('{'));
  if (json === undefined) throw new Error(`${what} printed no JSON.`);
  return JSON.parse(json) as Demo;
};

// The database is up seconds before the broker, so its part is done meanwhile.
const prepareData = async (
  session: Session,
  env: NodeJS.ProcessEnv,
  mysqlReady: Promise<void>,
): Promise<Demo> => {
  await mysqlReady;
  await migrate(session, env);
  return seed(session, env);
};

const findOps = async (env: NodeJS.ProcessEnv) => {
  const url = `http://127.0.0.1:${env.OPS_PORT}`;
  try {
    // Any answer counts: without its token the listener refuses.
    await fetch(url, { signal: AbortSignal.timeout(1_000), redirect: 'manual' });
    return { url, token: env.OPS_TOKEN ?? '' };
  } catch {
    return undefined;
  }
};

const announce = async (
  session: Session,
  env: NodeJS.ProcessEnv,
  given: { demo: Demo; engines: Engines },
): Promise<void> => {
  const { state, supervisor } = session;
  const ops = await findOps(env);
  const fixed = {
    ...given,
    ops,
    api: `http://127.0.0.1:${env.PORT}`,
    sim: `http://127.0.0.1:${env.SIM_PORT}`,
  };
  if (env.WHATSAPP_BASE_URL?.startsWith(fixed.sim)) {
    session.say('Sending a code to a simulated phone and verifying it…');
    const { api, sim } = fixed;
    await runSelfCheck({ api, sim, key: given.demo.keys.live, signal: session.signal });
  }
  const writeStack = (): Stack => {
    const stack = describeStack({ ...fixed, pids: supervisor.pids() });
    state.writeJson(stackFile, stack, 0o600);
    return stack;
  };
  session.afterRestart = writeStack;
  const stack = writeStack();
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(printStack(stack, { folder: state.folder, seconds }));
};

const start = async (session: Session): Promise<number> => {
  const { state, supervisor, signal, say } = session;
  rmSync(state.at(stackFile), { force: true });
  const doors = await chooseDoors(process.env, state.at('doors.json'));
  const { urls: engines, ready } = await startEngines(session, {
    env: process.env,
    forTests: false,
    durable: true,
  });
  const env = buildEnvironment({ env: process.env, state, doors, engines });
  const given = { root, env };
  const [demo] = await Promise.all([
    prepareData(session, env, ready.mysql),
    supervisor.start(simulatorProgram(given)),
    precompile({ ...given, signal, processes: procfile.processes }),
    ready.redis,
    ready.rabbitmq,
  ]);
  say('Starting the API and the workers…');
  await Promise.all(
    procfile.processes.map((line) => supervisor.start(serviceProgram(line, given))),
  );
  await announce(session, env, { demo, engines });
  const alive = setInterval(() => undefined, 60_000);
  if (!signal.aborted) await once(signal, 'abort');
  clearInterval(alive);
  return 0;
};

await runSession(
  {
    folder: stateFolder(),
    disposable: false,
    stopOrder: [procfile.processes.map(({ name }) => name), ['sim'], ...engineProcesses],
    stoppedCode: 0,
    onFinish: ({ state }) => rmSync(state.at(stackFile), { force: true }),
  },
  start,
);
