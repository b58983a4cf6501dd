// The life of one command: its state folder, what it keeps running, and an orderly end whatever happens.
import { resolve } from 'node:path';
import { ClosedError } from './program.ts';
import { openState, type State } from './state.ts';
import { createSupervisor, type Supervisor } from './supervisor.ts';

export type Session = {
  state: State;
  supervisor: Supervisor;
  /** Aborted when the command ends, asked or not: nothing new is begun then. */
  signal: AbortSignal;
  say(line: string): void;
  /** Called whenever a program came up again under another pid; set it as needed. */
  afterRestart(): void;
};

export type SessionOptions = {
  folder: string;
  /** Takes a folder beside it when another command is using it; otherwise that is an error. */
  orNext?: boolean;
  /** Starts with an empty folder and throws the data away at the end; logs stay. */
  disposable: boolean;
  /** Programs in the order in which they are ended; those of one row end together. */
  stopOrder: readonly (readonly string[])[];
  /** Exit code after Ctrl-C or SIGTERM. */
  stoppedCode: number;
  /** Called before the first program is ended. */
  onFinish?(session: Session): void;
};

// One Ctrl-C arrives several times: from the terminal, from npm and from the bootstrap.
const oneSignalMs = 1_000;
// Long enough for an installation of packages to end, which must not be cut off.
const settleWithinMs = 180_000;

/** The folder of this command under TESSERA_STATE (default `.local` of the checkout). */
export const stateFolder = (part = ''): string =>
  resolve(import.meta.dirname, '../..', process.env.TESSERA_STATE || '.local', part);

const say = (line: string): void => {
  process.stderr.write(`${line}\n`);
};

const describe = (error: unknown): string => (error instanceof Error ? error.message : `${error}`);

const onStopRequest = (stop: () => void, kill: () => void): void => {
  let firstAt: number | undefined;
  const request = () => {
    if (firstAt === undefined) {
      firstAt = Date.now();
      stop();
    } else if (Date.now() - firstAt > oneSignalMs) kill();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, request);
  // The bootstrap is gone: nobody could ask us to stop any more.
  process.on('disconnect', request);
  process.channel?.unref();
};

const finish = async (session: Session, options: SessionOptions): Promise<void> => {
  const { supervisor, state } = session;
  supervisor.close();
  state.stopping();
  options.onFinish?.(session);
  for (const names of options.stopOrder) await supervisor.stop(names);
  if (options.disposable) state.discard();
  else state.release();
};

const runBody = async (
  session: Session,
  body: (session: Session) => Promise<number>,
): Promise<number> => {
  try {
    return await body(session);
  } catch (error) {
    if (!(session.signal.aborted || error instanceof ClosedError)) say(describe(error));
    return 1;
  }
};

const openSession = async (options: SessionOptions, signal: AbortSignal): Promise<Session> => {
  const { disposable, orNext = false } = options;
  const state = await openState(options.folder, { wipe: disposable, orNext });
  // Tells the bootstrap what to clean up if we are killed.
  process.send?.({ state: state.folder });
  const supervisor = createSupervisor({ state, say, onRestart: () => session.afterRestart() });
  const session: Session = { state, supervisor, signal, say, afterRestart: () => undefined };
  return session;
};

/** Resolves when `signal` is aborted and the body had time to see it. */
const patience = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    const settle = () => setTimeout(done, settleWithinMs).unref();
    if (signal.aborted) settle();
    else signal.addEventListener('abort', settle);
  });

/**
 * Runs `body` between an orderly begin and end and leaves the process with its exit code.
 * Ctrl-C and SIGTERM end everything in order; a second one, a second later, ends it at once.
 */
export const runSession = async (
  options: SessionOptions,
  body: (session: Session) => Promise<number>,
): Promise<never> => {
  const ending = new AbortController();
  let asked = false;
  let session: Session | undefined;
  const stop = () => {
    say('Stopping…');
    asked = true;
    session?.supervisor.close();
    ending.abort();
  };
  const kill = () => {
    session?.supervisor.kill();
    process.exit(130);
  };
  onStopRequest(stop, kill);
  process.on('exit', () => session?.supervisor.kill());

  try {
    session = await openSession(options, ending.signal);
  } catch (error) {
    say(describe(error));
    process.exit(1);
  }
  const ended = asked ? Promise.resolve(0) : runBody(session, body);
  const code = await Promise.race([ended, patience(ending.signal).then(() => 1)]);
  ending.abort();
  await finish(session, options);
  process.exit(asked ? options.stoppedCode : code);
};
