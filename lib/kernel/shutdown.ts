// Ending a process: in order, within a bound, and at once when asked twice.
import type { Log } from './log.ts';
import { describeError } from './redact.ts';

/** On SIGTERM or SIGINT runs `stop` once and exits 0; exits 1 when it fails or takes longer than `seconds`. */
export const onShutdown = (options: { log: Log; seconds: number; stop(): Promise<void> }): void => {
  const { log, seconds, stop } = options;
  let stopping = false;
  const end = (signal: string): void => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping');
    const timer = setTimeout(() => {
      log.error({ seconds }, 'not stopped in time');
      process.exit(1);
    }, seconds * 1000);
    stop().then(
      () => {
        clearTimeout(timer);
        log.info({}, 'stopped');
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ reason: describeError(error) }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
};
