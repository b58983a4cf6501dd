// Telling an engine that is away from everything else that can go wrong: the one passes by itself.
import { BrokerUnavailable, OutcomeUnknown } from './queue/errors.ts';
import { RedisUnavailable } from './redis.ts';

const mysqlCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR',
  'ER_SERVER_SHUTDOWN',
  'ER_CON_COUNT_ERROR',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_CONNECTION_KILLED',
]);

/** Whether an error means that MySQL, Redis or RabbitMQ is not there right now. */
export const isOutage = (error: unknown): boolean => {
  if (error instanceof RedisUnavailable) return true;
  if (error instanceof BrokerUnavailable || error instanceof OutcomeUnknown) return true;
  if (!(error instanceof Error)) return false;
  return (
    error.name === 'KnexTimeoutError' || ('code' in error && mysqlCodes.has(String(error.code)))
  );
};
