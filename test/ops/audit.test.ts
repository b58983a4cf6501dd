// The audit log: what begins is on record first, how it ended is never lost, and what nobody knows is not made up.
import test from 'ava';
import { fail } from '../../lib/kernel/errors.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createTrail } from '../../lib/ops/audit.ts';
import type { AuditEntry, AuditStore } from '../../lib/ops/audit-store.ts';
import { createRuns } from '../../lib/ops/runs.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { eventually } from '../support/stack.ts';

/** An audit log in memory that can be cut off. */
const createMemory = () => {
  const rows = new Map<string, AuditEntry>();
  const memory = { rows, away: false };
  const there = () => (memory.away ? Promise.reject(new Error('away')) : Promise.resolve());
  const change = (id: string, to: Partial<AuditEntry>) => {
    const row = rows.get(id);
    if (row) rows.set(id, { ...row, ...to });
  };
  const audit: AuditStore = {
    insert: async (entry) => {
      await there();
      rows.set(entry.id, entry);
    },
    update: async (id, { at, ...to }) => {
      await there();
      change(id, { ...to, updatedAt: at });
    },
    touch: async (id, { affected, at }) => {
      await there();
      if (rows.get(id)?.status === 'running') change(id, { affected, updatedAt: at });
    },
    find: async (id) => rows.get(id),
    list: async () => [...rows.values()],
    interrupt: async () => 0,
  };
  return { memory, audit };
};

const anAct = {
  ...{ actor: 'Ada', action: 'account.suspend', subject: 'x', detail: {} },
  requestId: 'r',
};

const stand = () => {
  const { memory, audit } = createMemory();
  const deps = { audit, clock: createHandClock(), log: silentLog };
  return { memory, trail: createTrail(deps), deps };
};
const only = (rows: Map<string, AuditEntry>): AuditEntry | undefined => [...rows.values()][0];

test('what cannot be written down is not done', async (t) => {
  const { memory, trail } = stand();
  memory.away = true;
  let done = false;
  const work = async () => {
    done = true;
  };
  await t.throwsAsync(trail.around(anAct, work));
  t.false(done);
});

test('an end that MySQL does not take is written as soon as it does, with what it was', async (t) => {
  const { memory, trail } = stand();
  trail.start();
  t.teardown(trail.stop);
  const answer = await trail.around(
    anAct,
    async () => {
      memory.away = true;
      return 7;
    },
    (n) => n,
  );
  t.is(answer, 7);
  t.like(only(memory.rows), { status: 'running' });
  memory.away = false;
  const row = await eventually(t, () => {
    const found = only(memory.rows);
    return found?.status === 'running' ? undefined : found;
  });
  t.like(row, { status: 'done', affected: 7, error: null });
});

test('a process that ends writes what it still owes', async (t) => {
  const { memory, trail } = stand();
  const failing = trail.around(anAct, async () => {
    memory.away = true;
    throw fail('NOT_FOUND');
  });
  await t.throwsAsync(failing, { message: /no such/i });
  memory.away = false;
  await trail.stop();
  t.like(only(memory.rows), { status: 'failed', affected: 0, error: 'NOT_FOUND' });
});

test('two orders over one job at the same moment: one begins', async (t) => {
  const { trail, deps, memory } = stand();
  const gate = Promise.withResolvers<void>();
  const runs = createRuns({
    ...{ ...deps, trail },
    stops: { ask: async () => undefined, isAsked: async () => false },
    letters: {
      scan: async () => ({ letters: [], total: 0 }),
      counts: async () => new Map(),
      settle: async () => {
        await gate.promise;
        return { settled: 0, seen: 0, end: 'empty' };
      },
    },
  });
  const order = {
    ...{ job: 'mail', how: 'redrive' as const, ids: ['a', 'b'], reason: undefined },
    ...{ most: 10, perSecond: 1, actor: 'Ada', requestId: 'r' },
  };
  const begun = await Promise.allSettled([runs.begin(order), runs.begin(order)]);
  t.deepEqual(
    begun.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  gate.resolve();
  const row = await eventually(t, () => {
    const found = only(memory.rows);
    return found?.status === 'running' ? undefined : found;
  });
  t.like(row, { status: 'done', affected: 0, error: '2 of 2 named letters were not there' });
  // Once it has ended the next may begin, also after one that could not be written down.
  memory.away = true;
  await t.throwsAsync(runs.begin(order));
  memory.away = false;
  await t.notThrowsAsync(runs.begin(order));
});
