// Endpoints as a process remembers them: those that can be sent to, for as long as no change was announced.
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { WebhookStore } from './store.ts';

const rememberMs = 10 * second;
const rememberedMost = 20_000;

export type Endpoints = {
  /** The endpoints of those accounts that have one; those in `readAgain` as they are now, whatever is remembered. */
  of(
    accountIds: readonly string[],
    readAgain?: ReadonlySet<string>,
  ): Promise<Map<string, Endpoint>>;
  /** Something about the account's endpoint has changed here. */
  forget(accountId: string): void;
};

/**
 * That an account has no address, that its endpoint is given up or in trouble is never remembered: it may have been
 * set right a moment ago, and then the very next event counts.
 */
export const createEndpoints = (deps: {
  webhooks: Pick<WebhookStore, 'endpoints'>;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
}): Endpoints => {
  const { webhooks, revocations, clock } = deps;
  type Known = { endpoint: Endpoint; epoch: string; until: number };
  const remembered = new Map<string, Known>();

  const keep = (endpoint: Endpoint, epoch: string, now: number): void => {
    const { disabled, failingSince, pausedUntil } = endpoint;
    if (disabled || failingSince !== null || pausedUntil !== null) return;
    if (remembered.size >= rememberedMost) remembered.clear();
    remembered.set(endpoint.accountId, { endpoint, epoch, until: now + rememberMs });
  };

  return {
    of: async (accountIds, readAgain = new Set()) => {
      const now = clock.now();
      const found = new Map<string, Endpoint>();
      // The epochs of before the question: what is announced meanwhile is asked for again.
      const unknown = new Map<string, string | undefined>();
      for (const accountId of accountIds) {
        const known = remembered.get(accountId);
        const epoch = revocations.epoch(accountId);
        const isCurrent = known && known.epoch === epoch && known.until > now;
        if (isCurrent && !readAgain.has(accountId)) {
          found.set(accountId, known.endpoint);
        } else unknown.set(accountId, epoch);
      }
      for (const [accountId, endpoint] of await webhooks.endpoints([...unknown.keys()])) {
        found.set(accountId, endpoint);
        const epoch = unknown.get(accountId);
        if (epoch !== undefined) keep(endpoint, epoch, now);
      }
      return found;
    },
    forget: (accountId) => {
      remembered.delete(accountId);
    },
  };
};
