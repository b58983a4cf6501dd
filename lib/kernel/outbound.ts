// What a call to somebody else's address came to.

/** Why there was no answer. */
export type NoAnswer =
  | 'blocked_address'
  | 'bad_url'
  | 'dns'
  | 'connection'
  | 'tls'
  | 'reset'
  | 'timeout';

export type OutboundResult =
  | { kind: 'answer'; status: number; retryAfter: string | undefined; durationMs: number }
  | { kind: 'none'; reason: NoAnswer; durationMs: number };
