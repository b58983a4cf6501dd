// Writing attempts down: those that end within a few milliseconds share one transaction, and so does what they say of
// their endpoints.
import type { Clock } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import type { Log } from '../kernel/log.ts';
import type { Attempted } from './attempt.ts';
import type { DisabledReason, Endpoint } from './endpoint-store.ts';
import { isGivenUp } from './rules.ts';
import type { WebhookStore } from './store.ts';

type Ended = { endpoint: Endpoint; attempted: Attempted };

export type Recorder = {
  /** Resolves when it is written. */
  add(endpoint: Endpoint, attempted: Attempted): Promise<void>;
  /** Resolves when not many wait to be written: until then, nothing new is begun. */
  caughtUp(): Promise<void>;
  drain(): Promise<void>;
};

type Deps = {
  webhooks: WebhookStore;
  clock: Clock;
  log: Log;
  /** What is remembered of an account's endpoint is no longer so. */
  forget(accountId: string): void;
};

const maxSize = 200;
/** Nobody waits for it, and each transaction costs as much with one attempt or a hundred. */
const maxWaitMs = 20;
/** More of them than this are not left waiting for MySQL: each keeps its event in memory. */
const unwrittenMost = maxSize / 2;

const disable = async (
  { webhooks, clock, log }: Deps,
  endpoint: Endpoint,
  reason: DisabledReason,
): Promise<void> => {
  await webhooks.disable(endpoint, clock.now(), reason);
  log.warn({ account_id: endpoint.accountId, reason }, 'webhook endpoint given up');
};

/** Of one endpoint: what its attempts of this group say about it. */
const noteEndpoint = async (deps: Deps, all: readonly Ended[]): Promise<void> => {
  const [{ endpoint } = {}] = all;
  if (!endpoint) return;
  const { webhooks, clock } = deps;
  const giveUp = all.find(({ attempted }) => attempted.giveUp)?.attempted.giveUp;
  if (giveUp) return disable(deps, endpoint, giveUp);
  const pauses = all.flatMap(({ attempted: { pauseUntil } }) => pauseUntil ?? []);
  if (pauses.length > 0) await webhooks.notePause(endpoint.accountId, Math.max(...pauses));
  const failed = all.filter(({ attempted: { result } }) => !result.ok && result.counts);
  // A success anywhere among them heals.
  if (failed.length === 0 || all.some(({ attempted }) => attempted.result.ok)) return;
  const now = clock.now();
  const state = await webhooks.noteFailures(endpoint.accountId, failed.length, now);
  if (isGivenUp(state, now)) await disable(deps, endpoint, 'failing');
};

const healed = (all: readonly Ended[]): string[] =>
  all
    .filter(({ endpoint, attempted: { result } }) => result.ok && endpoint.failingSince !== null)
    .map(({ endpoint }) => endpoint.accountId);

const run =
  (deps: Deps) =>
  async (all: Ended[]): Promise<undefined[]> => {
    const rows = all.map(({ attempted }) => attempted.recorded);
    // Given up before it is written that something is held: what is held stands behind an endpoint that is.
    const byAccount = Map.groupBy(all, ({ endpoint }) => endpoint.accountId);
    const troubled = [...byAccount.values()].filter((group) =>
      group.some(({ attempted }) => !attempted.result.ok),
    );
    for (const group of troubled) await noteEndpoint(deps, group);
    for (const [{ endpoint } = {}] of troubled) if (endpoint) deps.forget(endpoint.accountId);
    await deps.webhooks.record(rows, deps.clock.now());
    await deps.webhooks.noteHealthy([...new Set(healed(all))]);
    return [];
  };

export const createRecorder = (deps: Deps): Recorder => {
  const group = createGrouper<Ended, undefined>({ maxSize, maxWaitMs, run: run(deps) });
  let unwritten = 0;
  const waiting: (() => void)[] = [];

  const written = (): void => {
    unwritten -= 1;
    if (unwritten > unwrittenMost) return;
    for (const go of waiting.splice(0)) go();
  };

  return {
    add: async (endpoint, attempted) => {
      unwritten += 1;
      try {
        await group.add({ endpoint, attempted });
      } finally {
        written();
      }
    },
    caughtUp: async () => {
      if (unwritten > unwrittenMost) await new Promise<void>((go) => waiting.push(go));
    },
    drain: group.drain,
  };
};
