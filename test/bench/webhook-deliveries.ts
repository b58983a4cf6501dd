// What a delivery costs: CPU of the webhook worker, and of the engines, against a bare loop that posts the same bodies.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../lib/kernel/ids.ts';
import { render } from '../../lib/webhooks/render.ts';
import { cpuOf } from './usage.ts';
import { eventOf, type Stand } from './webhook-stand.ts';

export type DeliveryFigures = {
  /** Deliveries, and posts of the bare loop, per second of CPU. */
  perCpuSecond: number;
  barePerCpuSecond: number;
  /** CPU ms per delivery by process, the engines among them. */
  cpuMs: Record<string, number>;
};

export type Watched = {
  /** Whose CPU is counted; the worker is `webhook`. */
  pids: Record<string, number>;
  /** The worker's own settings of Node: the bare loop has the same. */
  nodeSettings: readonly string[];
};

/** Rounds of both in turn, so that what else the machine does meets both. */
const rounds = 3;
const burst = 7_000;
const burstWithinMs = 120_000;
const settleMs = 3_000;
const bareConcurrency = 64;

/** CPU of the bare loop for as many posts of the same body, ms. */
const measureBare = async (port: number, nodeSettings: readonly string[]): Promise<number> => {
  const [rendered] = render(eventOf(newId()));
  const args = [port, burst, bareConcurrency, rendered?.body ?? ''].map(String);
  const child = fork(join(import.meta.dirname, 'webhook-bare.ts'), args, {
    execArgv: [...nodeSettings],
  });
  const [{ cpuMs }] = (await once(child, 'message')) as [{ cpuMs: number }];
  return cpuMs;
};

/** Announces so many events at once; answers how many have arrived when they all have, or when time is up. */
const announceAtOnce = async ({ receivers, healthy, announce }: Stand, count: number) => {
  receivers.tell({ kind: 'reset' });
  await Promise.all(
    Array.from({ length: count }, (_, n) => announce(healthy[n % healthy.length] ?? '')),
  );
  const until = Date.now() + burstWithinMs;
  while ((await receivers.arrived()).length < count && Date.now() < until) await sleep(100);
  // What is written down behind the last answer belongs to it, too.
  await sleep(1_000);
  return (await receivers.arrived()).length;
};

const cpuNow = (pids: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid) ?? 0]));

/** Measures both, in turn. */
export const measureDeliveries = async (
  stand: Stand,
  watched: Watched,
): Promise<DeliveryFigures> => {
  const { pids, nodeSettings } = watched;
  // As in the bare loop, the first tenth warms up code and connections.
  await announceAtOnce(stand, burst / 10);
  await sleep(settleMs);
  const used: Record<string, number> = {};
  let arrived = 0;
  let bareMs = 0;
  for (let round = 0; round < rounds; round++) {
    const before = cpuNow(pids);
    arrived += await announceAtOnce(stand, burst);
    for (const [name, ms] of Object.entries(cpuNow(pids))) {
      used[name] = (used[name] ?? 0) + ms - (before[name] ?? 0);
    }
    bareMs += await measureBare(stand.receivers.port, nodeSettings);
  }
  return {
    perCpuSecond: (arrived / (used.webhook ?? 0)) * 1_000,
    barePerCpuSecond: ((burst * rounds) / bareMs) * 1_000,
    cpuMs: Object.fromEntries(
      Object.entries(used).map(([name, ms]) => [name, Number((ms / arrived).toFixed(3))]),
    ),
  };
};
