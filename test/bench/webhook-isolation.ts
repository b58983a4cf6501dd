// Isolation of webhooks: what dead and slow neighbours, and healthy ones that die, do to healthy endpoints.
import { setTimeout as sleep } from 'node:timers/promises';
import { healthyCount } from './webhook-hosts.ts';
import type { Stand } from './webhook-stand.ts';

/** p99 from event to arrival at the healthy endpoints, ms: alone, beside bad ones, and while 20 of them die. */
export type IsolationFigures = { aloneMs: number; besideBadMs: number; whileDyingMs: number };

const perSecond = 200;
const badPerSecond = 100;
const warmupMs = 5_000;
const windowMs = 30_000;
const dying = 20;
const settleMs = 3_000;

const p99Of = (values: readonly number[]): number => {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
};

/** Announces so many events a second to endpoints in turn, for `ms`. */
const announceSteadily = async (
  stand: Stand,
  ids: readonly string[],
  { rate, ms }: { rate: number; ms: number },
): Promise<number> => {
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  let sent = 0;
  for (let past = 0; past < ms; past = performance.now() - startedAt) {
    for (; sent < (past / 1_000) * rate; sent++) {
      pending.push(stand.announce(ids[sent % ids.length] ?? ''));
    }
    await sleep(5);
  }
  await Promise.all(pending);
  return sent;
};

/** The p99 at the healthy endpoints over a window; `beside` happens meanwhile. @throws Error when events are missing */
const measureWindow = async (stand: Stand, beside: () => Promise<unknown>, lost = 0) => {
  stand.receivers.tell({ kind: 'reset' });
  const [sent] = await Promise.all([
    announceSteadily(stand, stand.healthy, { rate: perSecond, ms: windowMs }),
    beside(),
  ]);
  await sleep(settleMs);
  const arrived = await stand.receivers.arrived();
  const wanted = sent * (1 - lost);
  // Those that die take what is on its way to them along.
  if (arrived.length < wanted * (lost > 0 ? 0.99 : 0.999)) {
    throw new Error(
      `of ${Math.round(wanted)} events ${arrived.length} arrived at healthy endpoints`,
    );
  }
  return p99Of(arrived);
};

/** Measures all three, one after the other. */
export const measureIsolation = async (stand: Stand): Promise<IsolationFigures> => {
  await announceSteadily(stand, stand.healthy, { rate: perSecond, ms: warmupMs });
  await sleep(1_000);
  const aloneMs = await measureWindow(stand, async () => undefined);
  const besideBadMs = await measureWindow(stand, () =>
    announceSteadily(stand, stand.bad, { rate: badPerSecond, ms: windowMs }),
  );
  const whileDyingMs = await measureWindow(
    stand,
    async () => {
      await sleep(windowMs / 2);
      stand.receivers.tell({ kind: 'die', below: dying });
    },
    dying / healthyCount / 2,
  );
  return { aloneMs, besideBadMs, whileDyingMs };
};
