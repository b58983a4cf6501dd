// Thousands of slow clients from several addresses beside a steady pace of sends: nothing dies, and the sends hardly notice.
import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Invariant } from './judge.ts';
import { seedSenders } from './load.ts';
import type { AttackCounts, AttackPlan } from './slow-attackers.ts';
import { figuresOf, judgeSlowClients, type SendTimes } from './slow-clients-judge.ts';
import type { StackFile, Stand } from './stand.ts';

const perSecond = 100;
const warmUpMs = 10_000;
const measureMs = 30_000;
/** All slow clients are there by then. */
const gatherMs = 10_000;
const patienceMs = 25_000;
const lookEveryMs = 500;

const slow = { halfOpen: 4_000, idle: 4_000, dripping: 400, againAfterMs: 10_000 };

type Senders = Awaited<ReturnType<typeof seedSenders>>;

let phones = 0;
const areaCodes = ['202', '212', '312', '415', '617', '702'];
const nextPhone = (): string => {
  phones += 1;
  return `+1${areaCodes[phones % areaCodes.length]}${2_000_000 + phones}`;
};

/** Sends at the pace for `ms`, and times each answer. */
const sendFor = async (api: string, senders: Senders, ms: number): Promise<SendTimes> => {
  const times: number[] = [];
  const failures: number[] = [];
  const send = async (n: number): Promise<void> => {
    const startedAt = performance.now();
    const status = await fetch(`${api}/v1/otp/deliver`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${senders[n % senders.length]?.key}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ phone: nextPhone(), code: '424242' }),
      signal: AbortSignal.timeout(patienceMs),
    }).then(
      async (answer) => {
        await answer.arrayBuffer();
        return answer.status;
      },
      () => 0,
    );
    if (status === 200) times.push(performance.now() - startedAt);
    else failures.push(status);
  };
  const running: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let n = 0; performance.now() - startedAt < ms; n++) {
    running.push(send(n));
    const due = startedAt + ((n + 1) * 1_000) / perSecond;
    await sleep(Math.max(0, due - performance.now()));
  }
  await Promise.all(running);
  return { ms: times, failures };
};

const rssMb = (pid: number): number => {
  const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
};

const timeHealth = async (api: string): Promise<number> => {
  const startedAt = performance.now();
  try {
    // A connection of its own, as a load balancer makes one.
    const headers = { connection: 'close' };
    const answer = await fetch(`${api}/health`, { headers, signal: AbortSignal.timeout(5_000) });
    await answer.arrayBuffer();
    return answer.ok ? performance.now() - startedAt : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
};

/** Looks at the API until it is stopped. */
const watch = (file: StackFile) => {
  const pid = file.pids.api ?? 0;
  const rss: number[] = [];
  const held: number[] = [];
  let healthMs = 0;
  let running = true;
  const looking = (async () => {
    while (running) {
      rss.push(rssMb(pid));
      held.push(readdirSync(`/proc/${pid}/fd`).length);
      healthMs = Math.max(healthMs, await timeHealth(file.api));
      await sleep(lookEveryMs);
    }
  })().catch(() => {
    healthMs = Number.POSITIVE_INFINITY;
  });
  return async () => {
    running = false;
    await looking;
    return { rss, held, healthMs };
  };
};

const startAttack = (api: string): { counts(): Promise<AttackCounts>; stop(): Promise<void> } => {
  const { hostname, port } = new URL(api);
  const child: ChildProcess = fork(join(import.meta.dirname, 'slow-attackers.ts'));
  const plan: AttackPlan = { ...slow, host: hostname, port: Number(port) };
  child.send(plan);
  return {
    counts: () =>
      new Promise((resolve) => {
        child.once('message', (counts) => resolve(counts as AttackCounts));
        child.send('counts');
      }),
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.kill();
      }),
  };
};

const diedSince = (before: StackFile, now: StackFile): string[] =>
  Object.keys(before.pids).filter((name) => before.pids[name] !== now.pids[name]);

/** Measures sends without slow clients and beside them; answers what must not have happened. */
export const countSlowClients = async (
  stand: Stand,
  say: (line: string) => void,
): Promise<Invariant[]> => {
  const file = stand.file();
  const senders = await seedSenders(file);
  await sendFor(file.api, senders, warmUpMs);
  say(`Sending ${perSecond} codes a second, first without slow clients…`);
  const stopBefore = watch(file);
  const before = await sendFor(file.api, senders, measureMs);
  const alone = await stopBefore();
  const { halfOpen, idle, dripping } = slow;
  say(
    `…then beside ${halfOpen} half-open requests, ${idle} idle connections, ${dripping} dripping bodies…`,
  );
  const attackers = startAttack(file.api);
  try {
    await sendFor(file.api, senders, gatherMs);
    const stopDuring = watch(file);
    const during = await sendFor(file.api, senders, measureMs);
    const beside = await stopDuring();
    const found = {
      before,
      during,
      attack: await attackers.counts(),
      died: diedSince(file, stand.file()),
      rssBefore: alone.rss,
      rssDuring: beside.rss,
      heldDuring: beside.held,
      healthMs: beside.healthMs,
    };
    for (const line of figuresOf(found)) say(`  ${line}`);
    return judgeSlowClients(found);
  } finally {
    await attackers.stop();
  }
};
