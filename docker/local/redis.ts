// The private Redis: append-only, never evicting, loopback only.
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Engine, EngineContext } from './engine.ts';

// The server answers PING with -LOADING until its data are read, so a reply alone is not enough.
const ping = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer to PING')));
    socket.once('error', reject);
    socket.once('data', (data) => {
      socket.destroy();
      if (data.toString().startsWith('+PONG')) resolve();
      else reject(new Error(data.toString().trim()));
    });
  });

/** Describes a private redis-server with its data in `<state>/redis`. */
export const createRedis = ({ data, ports, programs }: EngineContext): Engine => {
  const folder = join(data, 'redis');
  const file = programs['redis-server'] ?? programs['valkey-server'] ?? 'redis-server';
  const settings: Record<string, string> = {
    port: String(ports.redis),
    bind: '127.0.0.1',
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    // A rewrite takes half a core for seconds: at 64 MB, the server's own choice, a busy sender brings one every half minute.
    'auto-aof-rewrite-min-size': '256mb',
    save: '',
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
  };
  return {
    prepare: async () => {
      mkdirSync(folder, { recursive: true });
    },
    programs: [
      {
        name: 'redis',
        file,
        args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
        env: process.env,
        stopSignal: 'SIGTERM',
        stopWithinMs: 10_000,
        readyWithinMs: 60_000,
        ready: () => ping(ports.redis),
      },
    ],
  };
};
