// The ports of the doors: the documented ones, or others by PORT, OPS_PORT and SIM_PORT.
import type { Doors } from './environment.ts';
import { isFree, reservePorts } from './ports.ts';

const doors = {
  api: { variable: 'PORT', standard: 8080, title: 'the public API' },
  ops: { variable: 'OPS_PORT', standard: 8081, title: 'the ops listener' },
  sim: { variable: 'SIM_PORT', standard: 8082, title: 'the simulated phones' },
} as const;

/** Thrown when a port is taken or no port; the message names the setting. */
export class DoorError extends Error {}

const readPort = (text: string | undefined, door: (typeof doors)[keyof typeof doors]): number => {
  if (!text) return door.standard;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new DoorError(`${door.variable} must be a port number, not "${text}".`);
};

/**
 * The ports to use; 0 means any free one, the same again next time (kept in `file`).
 * @throws DoorError
 */
export const chooseDoors = async (env: NodeJS.ProcessEnv, file: string): Promise<Doors> => {
  const chosen = {} as Doors;
  for (const [name, door] of Object.entries(doors) as [keyof Doors, (typeof doors)['api']][]) {
    const port = readPort(env[door.variable], door);
    if (port !== 0 && !(await isFree(port))) {
      const advice = `Set ${door.variable} to another one, for example ${door.variable}=${port + 1000} npm start.`;
      throw new DoorError(`Port ${port}, for ${door.title}, is in use. ${advice}`);
    }
    chosen[name] = port;
  }
  const open = Object.keys(doors).filter((name) => chosen[name as keyof Doors] === 0);
  if (open.length === 0) return chosen;
  return { ...chosen, ...(await reservePorts(open, file)) };
};
