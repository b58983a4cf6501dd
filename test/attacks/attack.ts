// What an attack on a running stack is given, and what it measures.

/** What `npm start` writes to .local/stack.json. */
export type RunningStack = {
  /** Base URL of the public API, without a slash at its end. */
  api: string;
  /** Base URL of the ops listener. */
  ops: string;
  /** Base URL of the simulated providers and phones. */
  sim: string;
  ops_token: string;
  account: { email: string; password: string };
  keys: { live: string; test: string };
  /** Process ids by name; null for an engine that npm start did not start. */
  pids: Record<string, number | null>;
};

/** One measured value beside its bound, both with their unit. */
export type Figure = { what: string; value: string; bound: string; holds: boolean };

/**
 * One attack: HTTP to api, ops and sim, and /proc of the processes; under a minute, with a bounded count of requests.
 * It also runs against older commits: a route that is missing there is a figure that does not hold.
 */
export type Attack = {
  name: string;
  /** One sentence: what the attacker tries. */
  about: string;
  run(stack: RunningStack): Promise<Figure[]>;
};
