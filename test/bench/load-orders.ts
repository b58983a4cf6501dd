// What the load generator is asked to do and what it answers, as messages between two processes.

/** The call to make: `{phone}`, and a code where the call has one. */
export type Operation = 'bare' | 'send' | 'deliver' | 'verify' | 'totp';

export type LoadOrder = {
  operation: Operation;
  port: number;
  /** API keys, given out in turn by the number of the phone; none for the bare pipeline. */
  keys: readonly string[];
  connections: number;
  /** Number of the first phone; every request takes the next one, up to `count` of them. */
  first: number;
  count: number;
  warmupMs: number;
  /** Length of the timed window after the warm-up; 0: no window, all of `count` is sent. */
  measureMs: number;
};

export type LoadReport = {
  /** Answers in the timed window, how long it was, and how long each took (microseconds). */
  requests: number;
  seconds: number;
  latenciesUs: Uint32Array;
  /** How often each status came, warm-up included; 0 stands for no answer. */
  statuses: Record<string, number>;
  /** The first few answers that were not 200. */
  samples: string[];
  /** How many phones were used. */
  used: number;
};

/** From the load generator: the timed window opens or closes, or all is done. */
export type LoadNews =
  | { kind: 'opened' }
  | { kind: 'closed' }
  | { kind: 'done'; report: LoadReport }
  | { kind: 'failed'; reason: string };
