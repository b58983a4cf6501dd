// What a listener takes in, made from the settings: its connections and its request bodies, and who hears of refusals.
import type { Socket } from 'node:net';
import type { Config } from '../lib/kernel/config.ts';
import type { Log } from '../lib/kernel/log.ts';
import type { Metrics } from '../lib/pulse/metrics.ts';
import { type Bodies, createBodies } from './bodies.ts';
import { type Connections, createConnections } from './connections.ts';

export type Intake = { connections: Connections; bodies: Bodies };

/** Hears that a caller on a connection showed a valid credential. */
export type Trust = (socket: Socket) => void;

const bytesPerMb = 1024 * 1024;
/** A flood is one line in this time, not one for each connection. */
const logEveryMs = 10_000;

/** Counts refusals in the metrics, and logs how many there were by limit. */
const createRefusals = (metrics: Pick<Metrics, 'intake'>, log: Log, now: () => number) => {
  let counts: Record<string, number> = {};
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (limit: string): void => {
    metrics.intake.add(limit);
    counts[limit] = (counts[limit] ?? 0) + 1;
    if (now() - loggedAt < logEveryMs) return;
    log.warn({ refused: counts }, 'connections or request bodies refused at a limit');
    loggedAt = now();
    counts = {};
  };
};

/** The intake of one listener of a process. */
export const createIntake = (
  config: Config,
  metrics: Pick<Metrics, 'intake'>,
  log: Log,
): Intake => {
  const refused = createRefusals(metrics, log, () => performance.now());
  const proxied = (config.trustedProxies ?? 0) > 0;
  const connections = createConnections(
    {
      max: config.maxConnections,
      // Every connection is a proxy's: what comes from one address is bounded by its bodies.
      maxPerSource: proxied ? undefined : config.maxConnectionsPerAddress,
    },
    refused,
  );
  const bodies = createBodies(
    {
      bytes: config.bodyMemoryMb * bytesPerMb,
      atOnce: config.maxBodies,
      perSource: config.maxBodiesPerAddress,
    },
    refused,
  );
  return { connections, bodies };
};
