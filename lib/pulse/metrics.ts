// The metrics of one process: made once, handed to whoever counts.
import { Registry } from 'prom-client';

export type Metrics = {
  registry: Registry;
};

/** The metrics of a process in a registry of their own. */
export const createMetrics = (): Metrics => ({ registry: new Registry() });
