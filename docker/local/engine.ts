// What every private engine has in common.
import type { Programs } from './packages.ts';
import type { Program } from './program.ts';
import type { State } from './state.ts';

export const portNames = ['mysql', 'redis', 'amqp', 'amqpDist', 'epmd', 'management'] as const;
export type PortName = (typeof portNames)[number];

/** What an engine is made from: where its data lie, which ports are its own, what to run. */
export type EngineContext = {
  state: State;
  /** Folder of the data: the state folder, or one in memory when nobody needs them after the run. */
  data: string;
  ports: Record<PortName, number>;
  programs: Programs;
  /** Whether RabbitMQ offers its management API, which tests need and which takes 5 s to stop. */
  management: boolean;
  /** Whether what was confirmed must outlive a loss of power; tests need it to outlive a kill, which is faster. */
  durable: boolean;
};

/** A private engine: its data are made by `prepare`, then its programs run in this order. */
export type Engine = {
  prepare(signal: AbortSignal): Promise<void>;
  programs: readonly Program[];
};

/** Name of the user, the database and the virtual host of every private engine. */
export const ownName = 'tessera';
