// What the doctor says: findings, and the judgements that need nothing but what was measured.
import { minute, second } from '../kernel/clock.ts';

export type Level = 'ok' | 'warning' | 'error';

export type Area =
  | 'Settings'
  | 'Engines'
  | 'Clocks'
  | 'Queues'
  | 'WhatsApp'
  | 'Telegram'
  | 'Other providers'
  | 'Webhooks';

/** `code` is stable, for scripts; `text` and `advice` are for people. */
export type Finding = { code: string; area: Area; level: Level; text: string; advice: string };

type Make = (code: string, text: string, advice?: string) => Finding;

/** The three kinds of findings of an area. */
export const findingsOf = (area: Area): { ok: Make; warning: Make; error: Make } => {
  const make =
    (level: Level): Make =>
    (code, text, advice = '') => ({ code, area, level, text, advice });
  return { ok: make('ok'), warning: make('warning'), error: make('error') };
};

export type Engine = 'MySQL' | 'MariaDB' | 'Redis' | 'RabbitMQ';

/** The lowest version of each engine this service works on (design section 2). */
const lowest: Record<Engine, readonly [number, number]> = {
  MySQL: [8, 4],
  MariaDB: [10, 11],
  Redis: [7, 0],
  RabbitMQ: [3, 10],
};

const numbersOf = (version: string): [number, number] => {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(version) ?? [];
  return [Number(major), Number(minor)];
};

/** Whether an engine of this version is one the service is made for. */
export const judgeVersion = (engine: Engine, version: string): Finding => {
  const { ok, error } = findingsOf('Engines');
  const [major, minor] = numbersOf(version);
  const [wantedMajor, wantedMinor] = lowest[engine];
  const enough = major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  if (enough) return ok('engine.version', `${engine} ${version} answers.`);
  return error(
    'engine.old',
    `${engine} is version ${version}.`,
    `Upgrade it: ${wantedMajor}.${wantedMinor} is the oldest this service works on.`,
  );
};

const infoOf = (text: string): Map<string, string> =>
  new Map(
    text.split('\r\n').map((line) => {
      const [name = '', value = ''] = line.split(/:(.*)/s);
      return [name, value];
    }),
  );

/** What Redis says of itself (the answer to INFO): its version, and whether it may lose keys. */
export const judgeRedis = (text: string): Finding[] => {
  const { warning, error } = findingsOf('Engines');
  const info = infoOf(text);
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  const bounded = Number(info.get('maxmemory') ?? 0) > 0;
  const keeps = info.get('aof_enabled') === '1';
  return [
    judgeVersion('Redis', info.get('redis_version') ?? 'unknown'),
    ...(policy !== 'noeviction' && bounded
      ? [
          error(
            'redis.evicts',
            `Redis throws keys away when it is full (maxmemory-policy ${policy}): limits and codes would vanish.`,
            'Set maxmemory-policy noeviction.',
          ),
        ]
      : []),
    ...(keeps
      ? []
      : [
          warning(
            'redis.forgets',
            'Redis keeps no append-only file: a restart forgets open codes and limits.',
            'Set appendonly yes.',
          ),
        ]),
  ];
};

const skewNoted = 2 * second;
const skewRefused = 15 * second;

/** What a difference between this clock and another (ms, positive: ours is ahead) means. */
export const judgeSkew = (whose: string, skewMs: number, certainMs: number): Finding => {
  const { ok, warning, error } = findingsOf('Clocks');
  const off = Math.max(Math.abs(skewMs) - certainMs, 0);
  const text = `The clock of ${whose} is ${(off / 1000).toFixed(1)} s ${skewMs > 0 ? 'behind' : 'ahead of'} this machine's.`;
  const advice = 'Run a time service (chrony, systemd-timesyncd) on every machine.';
  if (off < skewNoted)
    return ok('clock.right', `The clock of ${whose} agrees with this machine's.`);
  if (off < skewRefused) return warning('clock.off', text, advice);
  return error(
    'clock.wrong',
    text,
    `${advice} TOTP codes and webhook signatures fail with clocks this far apart.`,
  );
};

export type QueueFacts = { ready: number; consumers: number } | undefined;

/** A queue with more than this in it is behind, whatever its bound. */
const behind = 1_000;

/** Who works on a job: workers are named after the first word of their jobs. */
const workerOf = (job: string): string => job.split('.')[0] ?? job;

/** So many of something. */
export const plural = (count: number, one: string): string =>
  `${count} ${one}${count === 1 ? '' : 's'}`;

/** What the queues of a job tell: fresh work, work to be repeated, and what nobody could do. */
export const judgeJob = (
  job: string,
  { fresh, again, dead }: { fresh: QueueFacts; again: QueueFacts; dead: QueueFacts },
  names = { fresh: job, again: `${job}.again`, dead: `${job}.dead` },
): Finding[] => {
  const { ok, warning, error } = findingsOf('Queues');
  const missing = [
    ...[fresh ? [] : [names.fresh], again ? [] : [names.again], dead ? [] : [names.dead]].flat(),
  ];
  if (!fresh || missing.length > 0) {
    const text = `${missing.join(', ')}: no such queue.`;
    return [
      error('queue.missing', text, 'Start the API or a worker once: they declare all queues.'),
    ];
  }
  const waiting = fresh.ready + (again?.ready ?? 0);
  const found: Finding[] = [];
  if (fresh.consumers === 0) {
    const text = `Nobody works on ${job}; ${waiting === 1 ? '1 job waits' : `${waiting} jobs wait`}.`;
    found.push(error('queue.idle', text, `Start the worker: workers/main.ts ${workerOf(job)}.`));
  } else if (waiting > behind) {
    const text = `${job} is behind: ${plural(waiting, 'job')} wait.`;
    const advice = `Look at its worker's log; if it is only busy, start another ${workerOf(job)} worker.`;
    found.push(warning('queue.behind', text, advice));
  }
  if (dead && dead.ready > 0) {
    const text = `${plural(dead.ready, 'dead letter')} in ${job}.dead.`;
    const advice =
      'Read their reasons in the operators’ console, mend what they name, and redrive them.';
    found.push(warning('queue.dead', text, advice));
  }
  return found.length > 0 ? found : [ok('queue.flows', `${job} flows.`)];
};

/** 0: nothing is wrong. 1: something is; with `strict` a warning is enough. */
export const exitCodeOf = (findings: readonly Finding[], strict: boolean): 0 | 1 =>
  findings.some(({ level }) => level === 'error' || (strict && level === 'warning')) ? 1 : 0;

/** News of a provider older than this says nothing about now. */
export const freshNewsMs = 60 * minute;
