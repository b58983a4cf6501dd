// Replays: what was held behind an endpoint goes out when it is set again, a few at a time beside what happens now.
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { WebhookStore } from './store.ts';

type Deps = { webhooks: WebhookStore; clock: Clock; log: Log };

const everyMs = second;
const leaseMs = minute;
/** One step; the next follows when no more than half of it still waits for the endpoint's turn. */
const stepSize = 100;

/** One step of every replay that is due; answers how many deliveries were released. */
export const replayOnce = async ({ webhooks, clock }: Deps): Promise<number> => {
  let released = 0;
  for (;;) {
    const now = clock.now();
    const replay = await webhooks.takeReplay(now, leaseMs);
    if (!replay) return released;
    const waiting = await webhooks.countWaiting(replay.accountId, stepSize);
    if (waiting > stepSize / 2) await webhooks.postponeReplay(replay, now + everyMs);
    else released += await webhooks.release(replay, { now, limit: stepSize, againMs: everyMs });
  }
};

/** The chore of it: a replay is a row in MySQL, so it goes on where it was, in whatever process. */
export const createReplayer = (deps: Deps): Chore =>
  repeat(
    async () => {
      const released = await replayOnce(deps);
      if (released > 0) deps.log.info({ released }, 'held webhooks released');
    },
    everyMs,
    deps.log,
  );
