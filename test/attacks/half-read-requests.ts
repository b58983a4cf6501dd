// Requests that are begun and not finished, thousands at once: what they take of the API's memory and time.
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { identify, isRunning } from '../../docker/local/processes.ts';
import type { Attack, Figure, RunningStack } from './attack.ts';

/** One wave of half-read requests. */
type Wave = {
  name: string;
  path: string;
  connections: number;
  /** Bytes that are sent of the body. */
  bytes: number;
  withKey: boolean;
};

const waves: readonly Wave[] = [
  {
    name: 'sign-ups with one byte',
    path: '/v1/clients/register',
    connections: 3_600,
    bytes: 1,
    withKey: false,
  },
  {
    name: 'sign-ups with 59 kB',
    path: '/v1/clients/register',
    connections: 1_100,
    bytes: 59_000,
    withKey: false,
  },
  {
    name: 'sends with a test key',
    path: '/v1/otp/send',
    connections: 2_900,
    bytes: 1,
    withKey: true,
  },
];

/** Addresses of the loopback network from which the connections come in turn. */
const sources = 8;
/** Connections opened at once, and the pause behind them. */
const batch = { size: 50, pauseMs: 20 };
/** How long a wave is held after its last connection. */
const holdMs = 8_000;
const healthEveryMs = 250;
const healthPatienceMs = 12_000;
const length = 60_000;

const maxRssMb = 400;
const maxHealthMs = 2_000;

const headOf = ({ path, withKey }: Wave, { api, keys }: RunningStack): string =>
  [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(api).host}`,
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    ...(withKey ? [`Authorization: Bearer ${keys.test}`] : []),
    '\r\n',
  ].join('\r\n');

type Counts = { opened: number; refused: number; closed: number };

/** Opens the connections of a wave; their ends are counted until `close`. */
const openWave = async (wave: Wave, stack: RunningStack) => {
  const { hostname, port } = new URL(stack.api);
  const counts: Counts = { opened: 0, refused: 0, closed: 0 };
  const sockets: Socket[] = [];
  const text = headOf(wave, stack) + '{'.padEnd(wave.bytes, ' ');
  const open = (n: number): void => {
    const localAddress = `127.0.0.${20 + (n % sources)}`;
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    socket.on('error', () => undefined);
    socket.on('close', () => counts.closed++);
    socket.on('connect', () => {
      counts.opened++;
      socket.write(text);
    });
    socket.once('data', (data) => {
      if (String(data).startsWith('HTTP/1.1 503')) counts.refused++;
    });
    sockets.push(socket);
  };
  for (let n = 0; n < wave.connections; n++) {
    open(n);
    if (n % batch.size === batch.size - 1) await sleep(batch.pauseMs);
  }
  return {
    counts,
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
};

/** Asks on a connection of its own; ms, or the patience when nothing came. */
const timeHealth = (api: string): Promise<number> =>
  new Promise((resolve) => {
    const startedAt = performance.now();
    const done = (): void => resolve(performance.now() - startedAt);
    const asked = get(`${api}/health`, { agent: false, timeout: healthPatienceMs }, (answer) => {
      answer.resume().on('end', answer.statusCode === 200 ? done : () => resolve(healthPatienceMs));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(healthPatienceMs));
  });

const rssMb = (pid: number): number => {
  try {
    const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kb) / 1024;
  } catch {
    return 0;
  }
};

/** Looks at the API until `stop`: its memory, and how long /health takes. */
const watch = (stack: RunningStack, pid: number) => {
  let peakMb = 0;
  let longestMs = 0;
  let running = true;
  const looking = (async () => {
    while (running) {
      peakMb = Math.max(peakMb, rssMb(pid));
      longestMs = Math.max(longestMs, await timeHealth(stack.api));
      await sleep(healthEveryMs);
    }
  })();
  return async () => {
    running = false;
    await looking;
    return { peakMb, longestMs };
  };
};

const runWave = async (wave: Wave, stack: RunningStack): Promise<Figure[]> => {
  const pid = stack.pids.api ?? 0;
  const api = identify(pid);
  const stop = watch(stack, pid);
  const { counts, close } = await openWave(wave, stack);
  await sleep(holdMs);
  const { opened, refused, closed } = { ...counts };
  close();
  const { peakMb, longestMs } = await stop();
  const lives = isRunning(api);
  const what = (figure: string): string => `${wave.name}: ${figure}`;
  return [
    {
      what: what('the API lives'),
      value: `${lives ? 'yes' : 'no'}; ${opened} opened, ${refused} answered 503, ${closed} closed`,
      bound: 'yes',
      holds: lives,
    },
    {
      what: what('its largest resident memory'),
      value: `${Math.round(peakMb)} MB`,
      bound: `${maxRssMb} MB`,
      holds: peakMb > 0 && peakMb <= maxRssMb,
    },
    {
      what: what('longest answer of /health'),
      value: longestMs >= healthPatienceMs ? 'none' : `${Math.round(longestMs)} ms`,
      bound: `${maxHealthMs} ms`,
      holds: longestMs <= maxHealthMs,
    },
  ];
};

export const halfReadRequests: Attack = {
  name: 'half-read-requests',
  about: 'Begins thousands of requests and never sends the rest of their bodies.',
  run: async (stack) => {
    const figures: Figure[] = [];
    for (const wave of waves) figures.push(...(await runWave(wave, stack)));
    return figures;
  },
};
