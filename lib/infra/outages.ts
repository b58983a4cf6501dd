// Telling an engine that is away from everything else that can go wrong: the one passes by itself.
import { BrokerUnavailable, OutcomeUnknown } from './queue/errors.ts';
import { RedisUnavailable } from './redis.ts';

const mysqlCodes = new Set([
  // The network, and the name service: a container that is stopped has no address (EAI_AGAIN).
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  // TLS that the server does not offer, or a certificate of its that is not accepted: no connection, no statement.
  'HANDSHAKE_NO_SSL_SUPPORT',
  'HANDSHAKE_SSL_ERROR',
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR',
  // The server ends, is full, or has ended a statement or connection of ours.
  'ER_ABORTING_CONNECTION',
  'ER_CLIENT_INTERACTION_TIMEOUT',
  'ER_CON_COUNT_ERROR',
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_NEW_ABORTING_CONNECTION',
  'ER_NORMAL_SHUTDOWN',
  'ER_QUERY_INTERRUPTED',
  'ER_SERVER_SHUTDOWN',
  'ER_SESSION_WAS_KILLED',
  'ER_TOO_MANY_USER_CONNECTIONS',
  // A server that a failover has made read-only: its address leads to the new one in a moment.
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_OPTION_PREVENTS_STATEMENT',
  'ER_READ_ONLY_MODE',
]);

/** MariaDB's ER_CONNECTION_KILLED, for which mysql2 has no name. */
const connectionKilled = 1927;

/** Whether an error means that MySQL, Redis or RabbitMQ is not there right now. */
export const isOutage = (error: unknown): boolean => {
  if (error instanceof RedisUnavailable) return true;
  if (error instanceof BrokerUnavailable || error instanceof OutcomeUnknown) return true;
  if (!(error instanceof Error)) return false;
  if (error.name === 'KnexTimeoutError') return true;
  if ('errno' in error && error.errno === connectionKilled) return true;
  return 'code' in error && mysqlCodes.has(String(error.code));
};
