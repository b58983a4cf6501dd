// The settings of what a listener takes in: connections, request bodies, and how long they may take.
import { integer } from './schema.ts';
import { milliseconds, setting } from './setting.ts';

export const intakeSettings = {
  maxConnections: setting(
    'MAX_CONNECTIONS',
    integer().min(10).max(100_000).default(4_000),
    'Connections one process of the API holds at once. One more closes the one that has been idle or half-read for longest.',
  ),
  maxConnectionsPerAddress: setting(
    'MAX_CONNECTIONS_PER_ADDRESS',
    integer().min(5).max(100_000).default(1_000),
    'The same for one IPv4 address or IPv6 /64. With TRUSTED_PROXIES set it does not count: the peer is the proxy.',
  ),
  maxBodies: setting(
    'MAX_BODIES',
    integer().min(4).max(100_000).default(1_000),
    'Request bodies one process waits for at once; callers without a valid credential share a quarter. One more refuses the one that has been waited for longest with 503.',
  ),
  maxBodiesPerAddress: setting(
    'MAX_BODIES_PER_ADDRESS',
    integer().min(1).max(100_000).default(100),
    'The same for callers without a valid credential from one IPv4 address or IPv6 /64; behind TRUSTED_PROXIES the address in X-Forwarded-For.',
  ),
  bodyMemoryMb: setting(
    'BODY_MEMORY_MB',
    integer().min(16).max(1_024).default(32),
    'Memory (MB) that all request bodies being read hold together; callers without a valid credential share a quarter. Above it the largest and slowest is refused with 503.',
  ),
  headersTimeoutMs: setting(
    'HEADERS_TIMEOUT_MS',
    milliseconds(100, 60_000, 10_000),
    'How long the headers of a request may take to arrive.',
  ),
  requestTimeoutMs: setting(
    'REQUEST_TIMEOUT_MS',
    milliseconds(100, 120_000, 15_000),
    'How long a request may take to arrive with its body.',
  ),
};
