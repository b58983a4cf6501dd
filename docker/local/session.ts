// The life of one command: its state folder, what it keeps running, and an orderly end whatever happens.
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openState, ownerOf, type State } from './state.ts';
import { ClosedError, createSupervisor, type Supervisor } from './supervisor.ts';

export type Session = {
  state: State;
  supervisor: Supervisor;
  /** Aborted when the command is asked to end. */
  signal: AbortSignal;
  say(line: string): void;
};

export type SessionOptions = {
  folder: string;
  /** Starts with an empty folder and throws the data away at the end; logs stay. */
  disposable: boolean;
  /** Programs in the order in which they are ended; those of one row end together. */
  stopOrder: readonly (readonly string[])[];
  /** Exit code after Ctrl-C or SIGTERM. */
  stoppedCode: number;
  onRestart?(session: Session): void;
};

// One Ctrl-C arrives several times: from the terminal, from npm and from the bootstrap.
const oneSignalMs = 1_000;
const settleWithinMs = 15_000;

/** The folder of this command under TESSERA_STATE (default `.local` of the checkout). */
export const stateFolder = (part = ''): string =>
  resolve(import.meta.dirname, '../..', process.env.TESSERA_STATE || '.local', part);

/** `folder`, or the first of `folder-2`, `folder-3`, … that no other command is using. */
export const unusedFolder = (folder: string): string => {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? folder : `${folder}-${number}`;
    if (!ownerOf(candidate)) return candidate;
  }
};

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

/**
 * Runs `body` between an orderly begin and end and leaves the process with its exit code.
 * Ctrl-C and SIGTERM end everything in order; a second one, a second later, ends it at once.
 */
export const runSession = async (
  options: SessionOptions,
  body: (session: Session) => Promise<number>,
): Promise<never> => {
  const stopping = new AbortController();
  let supervisor: Supervisor | undefined;
  const stop = () => {
    say('Stopping…');
    supervisor?.close();
    stopping.abort();
  };
  const kill = () => {
    supervisor?.kill();
    process.exit(130);
  };
  onStopRequest(stop, kill);
  process.on('exit', () => supervisor?.kill());

  let state: State;
  try {
    state = await openState(options.folder, { wipe: options.disposable });
  } catch (error) {
    say(describe(error));
    process.exit(1);
  }
  process.send?.({ state: state.folder });
  supervisor = createSupervisor({
    state,
    say,
    onRestart: () => options.onRestart?.(session),
  });
  const session: Session = { state, supervisor, signal: stopping.signal, say };
  if (stopping.signal.aborted) supervisor.close();

  const ended = runBody(session, body);
  const stopped = new Promise<void>((done) => {
    if (stopping.signal.aborted) done();
    else stopping.signal.addEventListener('abort', () => done());
  }).then(() => sleep(settleWithinMs, options.stoppedCode, { ref: false }));
  const code = await Promise.race([ended, stopped]);
  await finish(session, options);
  process.exit(stopping.signal.aborted ? options.stoppedCode : code);
};
