// Logging: JSON lines through pino; fields are named one by one, free text is redacted.
import { pino } from 'pino';
import { redact } from './redact.ts';

export type LogFields = Record<string, unknown>;

export type Log = {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
};

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

// Named paths only: wildcards are what makes redaction slow.
const censored = ['phone', 'code', 'token', 'secret', 'password', 'authorization', 'key', 'url'];

/** A log that writes JSON lines to `destination` (standard output by default), times in UTC. */
export const createLog = (options: {
  level: LogLevel;
  process: string;
  destination?: { write(line: string): void };
}): Log =>
  pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: censored, censor: '***' },
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(args, method) {
          const [fields, message] = args as [LogFields, string];
          method.apply(this, [fields, redact(message)] as Parameters<typeof method>);
        },
      },
    },
    // Lines are gathered for a moment: one write per line would cost as much as the rest of a request.
    options.destination ?? pino.destination({ sync: false, minLength: 8_192, periodicFlush: 100 }),
  );

const nothing = () => undefined;

/** A log that keeps quiet, for tests. */
export const silentLog: Log = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  child: () => silentLog,
};
