// What a call to somebody else's address came to.

/** Why there was no answer. */
export type NoAnswer =
  /** The address is written as one we do not call. */
  | 'blocked_address'
  /** The name led to an address we do not call. */
  | 'blocked_name'
  | 'bad_url'
  | 'dns'
  | 'connection'
  | 'tls'
  | 'reset'
  | 'timeout';

export type OutboundResult =
  | { kind: 'answer'; status: number; retryAfter: string | undefined; durationMs: number }
  | { kind: 'none'; reason: NoAnswer; durationMs: number };
