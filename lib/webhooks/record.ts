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

/** What the attempts of a group say about one endpoint. */
type Said = {
  endpoint: Endpoint;
  giveUp: DisabledReason | undefined;
  pauseUntil: number | undefined;
  ok: boolean;
  /** Attempts that failed and count; none when something was taken: a success anywhere among them heals. */
  failures: number;
};

const saidBy = (all: readonly Ended[]): Said[] => {
  // The address may have been set between two of them: what is given up is the one that asked for it.
  const { endpoint } = all.find(({ attempted }) => attempted.giveUp) ?? all[0] ?? {};
  if (!endpoint) return [];
  const attempts = all.map(({ attempted }) => attempted);
  const ok = attempts.some(({ result }) => result.ok);
  const pauses = attempts.flatMap(({ pauseUntil }) => pauseUntil ?? []);
  const failed = attempts.filter(({ result }) => !result.ok && result.counts);
  return [
    {
      endpoint,
      ok,
      giveUp: attempts.find(({ giveUp }) => giveUp)?.giveUp,
      pauseUntil: pauses.length > 0 ? Math.max(...pauses) : undefined,
      failures: ok ? 0 : failed.length,
    },
  ];
};

const seen = ({ accountId, changedAt }: Endpoint) => ({ accountId, changedAt });

/** Notes what is wrong, in as many statements for all endpoints together as for one: nobody waits for the others'. */
const noteTrouble = async (deps: Deps, said: readonly Said[]): Promise<void> => {
  const { webhooks, clock } = deps;
  const troubled = said.filter(({ giveUp }) => giveUp === undefined);
  await webhooks.notePauses(
    troubled.flatMap(({ endpoint, pauseUntil }) =>
      pauseUntil === undefined ? [] : [{ ...seen(endpoint), value: pauseUntil }],
    ),
  );
  const now = clock.now();
  const failed = troubled.filter(({ failures }) => failures > 0);
  const standing = await webhooks.noteFailures(
    failed.map(({ endpoint, failures }) => ({ ...seen(endpoint), value: failures })),
    now,
  );
  for (const one of said) {
    const failing = standing.get(one.endpoint.accountId);
    const reason = one.giveUp ?? (failing && isGivenUp(failing, now) ? 'failing' : undefined);
    if (reason) await disable(deps, one.endpoint, reason);
  }
};

const run =
  (deps: Deps) =>
  async (all: Ended[]): Promise<undefined[]> => {
    const byAccount = Map.groupBy(all, ({ endpoint }) => endpoint.accountId);
    const said = [...byAccount.values()].flatMap(saidBy);
    // Given up before it is written that something is held: what is held stands behind an endpoint that is.
    await noteTrouble(deps, said);
    for (const { endpoint, ok, failures, pauseUntil, giveUp } of said) {
      if (!ok || failures > 0 || pauseUntil || giveUp) deps.forget(endpoint.accountId);
    }
    await deps.webhooks.record(
      all.map(({ attempted }) => attempted.recorded),
      deps.clock.now(),
    );
    const healed = said.filter(({ endpoint, ok }) => ok && endpoint.failingSince !== null);
    await deps.webhooks.noteHealthy(healed.map(({ endpoint }) => endpoint.accountId));
    return [];
  };

export const createRecorder = (deps: Deps): Recorder => {
  const write = run(deps);
  const waiting: (() => void)[] = [];
  let unwritten = 0;

  const written = (count: number): void => {
    unwritten -= count;
    if (unwritten > unwrittenMost) return;
    for (const go of waiting.splice(0)) go();
  };

  const group = createGrouper<Ended, undefined>({
    ...{ maxSize, maxWaitMs },
    run: async (all) => {
      try {
        return await write(all);
      } finally {
        written(all.length);
      }
    },
  });

  return {
    add: (endpoint, attempted) => {
      unwritten += 1;
      return group.add({ endpoint, attempted });
    },
    caughtUp: async () => {
      if (unwritten > unwrittenMost) await new Promise<void>((go) => waiting.push(go));
    },
    drain: group.drain,
  };
};
