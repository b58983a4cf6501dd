// Probes: an endpoint that was given up gets one event a day, and all that is held for it when it takes that one.
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { Attempt } from './attempt.ts';
import type { WebhookStore } from './store.ts';

type Deps = {
  webhooks: WebhookStore;
  deliverer: { attempt: Attempt };
  clock: Clock;
  log: Log;
};

const everyMs = 10 * minute;
const againMs = day;

const probe = async ({ webhooks, deliverer, clock, log }: Deps, accountId: string) => {
  const endpoint = await webhooks.endpoint(accountId);
  const held = endpoint?.disabled ? await webhooks.oldestHeld(accountId) : undefined;
  // Nothing is held: then nothing is missed either, and tomorrow there may be something.
  if (!endpoint || !held) return;
  const { recorded, result } = await deliverer.attempt({ ...held, manual: true }, endpoint);
  if (!result.ok) return webhooks.noteProbe(held, recorded.attempt);
  await webhooks.record([recorded], clock.now());
  // Its owner may have set another address meanwhile: then that one begins anew.
  await webhooks.enable(accountId, clock.now());
  log.info({ account_id: accountId }, 'webhook endpoint answers again');
};

/**
 * Probes every endpoint that was given up as failing and is due. One that said it is gone is never called again until
 * its owner sets it.
 */
export const probeOnce = async (deps: Deps): Promise<void> => {
  const now = deps.clock.now();
  for (;;) {
    const accountId = await deps.webhooks.takeProbe(now - againMs, now);
    if (accountId === undefined) return;
    await probe(deps, accountId);
  }
};

/** The chore of it. */
export const createProber = (deps: Deps): Chore => repeat(() => probeOnce(deps), everyMs, deps.log);
