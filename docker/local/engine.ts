// What every private engine has in common.
import type { Programs } from './packages.ts';
import type { State } from './state.ts';
import type { Program } from './supervisor.ts';

export const portNames = ['mysql', 'redis', 'amqp', 'amqpDist', 'epmd', 'management'] as const;
export type PortName = (typeof portNames)[number];

/** What an engine is made from: where its data lie, which ports are its own, what to run. */
export type EngineContext = {
  state: State;
  ports: Record<PortName, number>;
  programs: Programs;
};

/** A private engine: its data are made by `prepare`, then its programs run in this order. */
export type Engine = {
  prepare(signal: AbortSignal): Promise<void>;
  programs: readonly Program[];
};

/** Name of the user, the database and the virtual host of every private engine. */
export const ownName = 'tessera';
