// Orders over many dead letters: they run in this process, on record from the first letter to the last.
import type { Letter, Letters, Settled } from '../infra/queue/letters.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { describeError } from '../kernel/redact.ts';
import { type AuditDeps, beginAct, endAct } from './audit.ts';
import type { AuditEntry, AuditStatus } from './audit-store.ts';

export type RunOrder = {
  job: string;
  how: 'redrive' | 'purge';
  /** Ids of letters; empty: every one that fits `reason`. */
  ids: readonly string[];
  /** Only letters of this reason; undefined: of any. */
  reason: string | undefined;
  most: number;
  perSecond: number;
  actor: string;
  requestId: string;
};

export type Runs = Chore & {
  /** Begins an order. @throws VALIDATION_ERROR while one runs over the same job */
  begin(order: RunOrder): Promise<AuditEntry>;
  /** @throws NOT_FOUND */
  find(id: string): Promise<AuditEntry>;
  /** Ends a run of this process after the letters it has in hand. @throws NOT_FOUND */
  halt(id: string): void;
};

const actions = { redrive: 'dead.redrive', purge: 'dead.purge' } as const;
const saveEveryMs = 1_000;
/** A run that has not been heard of for this long ended with its process. */
const lostAfterMs = 5_000;

type Running = {
  entry: AuditEntry;
  job: string;
  settled: number;
  stop: AbortController;
  ended: Promise<void>;
};

const wantedBy = ({ ids, reason }: RunOrder) => {
  const set = new Set(ids);
  return (letter: Letter): boolean =>
    (set.size === 0 || set.has(letter.id)) && (reason === undefined || letter.reason === reason);
};

const statusOf = ({ end }: Settled): AuditStatus => (end === 'stopped' ? 'stopped' : 'done');
const noteOf = ({ end }: Settled): string | null =>
  end === 'held' ? 'many letters that were not meant lie before the rest: ask again' : null;

export const createRuns = (deps: AuditDeps & { letters: Letters }): Runs => {
  const { letters, audit, clock, log } = deps;
  const running = new Map<string, Running>();

  const execute = async (run: Running, order: RunOrder): Promise<void> => {
    const { id } = run.entry;
    try {
      const settled = await letters.settle(order.job, {
        ...{ how: order.how, wanted: wantedBy(order), perSecond: order.perSecond },
        // Letters named one by one cannot be more than their names.
        most: order.ids.length > 0 ? Math.min(order.most, order.ids.length) : order.most,
        signal: run.stop.signal,
        onProgress: (count) => {
          run.settled = count;
        },
      });
      const status = statusOf(settled);
      await endAct(deps, id, { status, affected: settled.settled, error: noteOf(settled) });
    } catch (error) {
      const reason = describeError(error);
      log.warn({ job: order.job, reason }, 'an order over dead letters failed');
      await endAct(deps, id, { status: 'failed', affected: run.settled, error: reason });
    } finally {
      running.delete(id);
    }
  };

  const save = async (): Promise<void> => {
    const at = clock.now();
    for (const { entry, settled } of running.values()) {
      await audit.update(entry.id, { status: 'running', affected: settled, error: null, at });
    }
    await audit.interrupt(at - lostAfterMs, at);
  };
  const chore = repeat(save, saveEveryMs, log);

  return {
    begin: async (order) => {
      const busy = [...running.values()].some(({ job }) => job === order.job);
      if (busy)
        throw invalid({ field: 'job', issue: 'an order runs over its dead letters already' });
      const { job, how, ids, reason, most, perSecond, actor, requestId } = order;
      const detail = { ids, reason: reason ?? null, most, per_second: perSecond };
      const act = { actor, action: actions[how], subject: job, detail, requestId };
      const entry = await beginAct(deps, act);
      const run: Running = {
        ...{ entry, job, settled: 0, stop: new AbortController(), ended: Promise.resolve() },
      };
      running.set(entry.id, run);
      run.ended = execute(run, order);
      return entry;
    },
    find: async (id) => {
      const found = await audit.find(id);
      if (!found) throw fail('NOT_FOUND');
      const live = running.get(id);
      return live ? { ...found, affected: live.settled } : found;
    },
    halt: (id) => {
      const run = running.get(id);
      if (!run) throw fail('NOT_FOUND');
      run.stop.abort();
    },
    start: chore.start,
    stop: async () => {
      await chore.stop();
      for (const run of running.values()) run.stop.abort();
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
};
