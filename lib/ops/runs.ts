// Orders over many dead letters: they run in this process, on record from the first letter to the last.
import { heldMax, type Letter, type Letters, type Settled } from '../infra/queue/letters.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { ActEnd, Trail } from './audit.ts';
import type { AuditEntry, AuditStatus, AuditStore } from './audit-store.ts';
import type { StopStore } from './stop-store.ts';

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
  /** Begins an order. @throws VALIDATION_ERROR while one of this process runs over the same job */
  begin(order: RunOrder): Promise<AuditEntry>;
  /** @throws NOT_FOUND */
  find(id: string): Promise<AuditEntry>;
  /** Ends a run, whichever process it is in, after the letters it has in hand. @throws NOT_FOUND when it does not run */
  halt(id: string): Promise<void>;
};

export type RunDeps = {
  letters: Letters;
  audit: AuditStore;
  trail: Trail;
  stops: StopStore;
  clock: Clock;
  log: Log;
};

const actions = { redrive: 'dead.redrive', purge: 'dead.purge' } as const;
const saveEveryMs = 1_000;
/** An act that has not been heard of for this long ended with its process. */
const lostAfterMs = 5_000;

type Running = {
  entry: AuditEntry;
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

/** What an operator must know about an order that did not do all that was asked. */
const noteOf = ({ end, settled }: Settled, named: number): string | null => {
  if (end === 'held') {
    return `more than ${heldMax} letters that were not meant lie before the rest: settle some of those first`;
  }
  return named > settled && end === 'empty'
    ? `${named - settled} of ${named} named letters were not there`
    : null;
};

/** Does what was ordered, and answers how it ended. Never throws. */
const carryOut = async (
  { letters, log }: Pick<RunDeps, 'letters' | 'log'>,
  run: Running,
  order: RunOrder,
): Promise<ActEnd> => {
  // Letters named one by one cannot be more than their names.
  const named = new Set(order.ids).size;
  try {
    const settled = await letters.settle(order.job, {
      ...{ how: order.how, wanted: wantedBy(order), perSecond: order.perSecond },
      most: named > 0 ? Math.min(order.most, named) : order.most,
      signal: run.stop.signal,
      onProgress: (count) => {
        run.settled = count;
      },
    });
    const error = noteOf(settled, Math.min(order.most, named));
    return { status: statusOf(settled), affected: settled.settled, error };
  } catch (error) {
    const reason = describeError(error);
    log.warn({ job: order.job, reason }, 'an order over dead letters failed');
    return { status: 'failed', affected: run.settled, error: reason };
  }
};

export const createRuns = (deps: RunDeps): Runs => {
  const { audit, trail, stops, clock, log } = deps;
  const running = new Map<string, Running>();
  /** Jobs with an order; taken before anything is waited for. */
  const busy = new Set<string>();

  const execute = async (run: Running, order: RunOrder): Promise<void> => {
    const end = await carryOut(deps, run, order);
    busy.delete(order.job);
    await trail.end(run.entry.id, end);
    running.delete(run.entry.id);
  };

  const save = async (): Promise<void> => {
    const at = clock.now();
    for (const { entry, settled, stop } of running.values()) {
      if (await stops.isAsked(entry.id).catch(() => false)) stop.abort();
      await audit.touch(entry.id, { affected: settled, at });
    }
    await audit.interrupt(at - lostAfterMs, at);
  };
  const chore = repeat(save, saveEveryMs, log);

  const find = async (id: string): Promise<AuditEntry> => {
    const found = await audit.find(id);
    if (!found) throw fail('NOT_FOUND');
    const live = running.get(id);
    return live && found.status === 'running' ? { ...found, affected: live.settled } : found;
  };

  return {
    find,
    begin: async (order) => {
      const { job, how, ids, reason, most, perSecond, actor, requestId } = order;
      if (busy.has(job))
        throw invalid({ field: 'job', issue: 'an order runs over its dead letters already' });
      busy.add(job);
      const detail = { ids, reason: reason ?? null, most, per_second: perSecond };
      const act = { actor, action: actions[how], subject: job, detail, requestId };
      const entry = await trail.begin(act).catch((error: unknown) => {
        busy.delete(job);
        throw error;
      });
      const run: Running = {
        ...{ entry, settled: 0, stop: new AbortController(), ended: Promise.resolve() },
      };
      running.set(entry.id, run);
      run.ended = execute(run, order);
      return entry;
    },
    halt: async (id) => {
      const { status, action } = await find(id);
      const isOrder = Object.values<string>(actions).includes(action);
      if (!isOrder || status !== 'running') throw fail('NOT_FOUND');
      const run = running.get(id);
      if (run) run.stop.abort();
      else await stops.ask(id);
    },
    start: chore.start,
    stop: async () => {
      await chore.stop();
      for (const run of running.values()) run.stop.abort();
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
};
