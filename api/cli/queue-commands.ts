// Queues, dead letters, processes and the audit log on the command line.
import { setTimeout as pause } from 'node:timers/promises';
import type { Answered } from './client.ts';
import { CommandError, exitCodes } from './client.ts';
import { type Command, type Given, numberOf, type Outcome, pathTo, textOf } from './command.ts';
import { type Cell, facts, plain, span, table } from './table.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of our own listener, shown as they are
type Rows = Record<string, any>[];
const itemsOf = (data: Answered): Rows => data.items as Rows;

/** An age that what was kept does not reach back to is told as what it is at least. */
const ageOf = ({ oldest_age_ms: ms, oldest_age_is_least: least }: Rows[number]): string =>
  `${least ? '>' : ''}${span(ms)}`;

const queues: Command = {
  name: 'queues',
  usage: '',
  about: 'What waits, what is in hand and what is dead, for every job.',
  run: async ({ client }) => {
    const data = await client.get('/queues');
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.job, one.ready, one.unacked, ageOf(one)],
      ...[one.in_per_second, one.out_per_second, one.consumers],
      one.waiting.reduce((sum: number, { ready }: { ready: number }) => sum + ready, 0),
      one.dead,
    ]);
    const titles = [
      'JOB',
      'READY',
      'UNACKED',
      'OLDEST',
      'IN/S',
      'OUT/S',
      'WORKERS',
      'RETRY',
      'DEAD',
    ];
    return { data, text: table(titles, rows) };
  },
};

const deadList: Command = {
  name: 'dead list',
  usage: 'JOB',
  about: 'Dead letters of a job with their reasons.',
  least: 1,
  options: {
    reason: { type: 'string', about: 'only those of this reason' },
    limit: { type: 'string', about: 'how many (50)' },
  },
  run: async ({ client, words: [job = ''], values }) => {
    const query = new URLSearchParams({ limit: String(numberOf(values, 'limit') ?? 50) });
    const reason = textOf(values, 'reason');
    if (reason !== undefined) query.set('reason', reason);
    const data = await client.get(`${pathTo`/dead/${job}`}?${query}`);
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.id, one.reason, one.attempts, span(one.age_ms), one.message_id, one.last_error],
    ]);
    const reasons = Object.entries(data.reasons as Record<string, number>);
    const summary = reasons.map(([name, count]) => `${plain(name)} ${count}`).join(', ');
    const head = `${data.total} dead${summary ? `: ${summary}` : ''}\n`;
    const titles = ['ID', 'REASON', 'ATTEMPTS', 'AGE', 'MESSAGE', 'LAST ERROR'];
    return { data, text: rows.length > 0 ? `${head}${table(titles, rows)}` : head };
  },
};

const orderOptions: NonNullable<Command['options']> = {
  id: { type: 'string', multiple: true, about: 'only this letter; can be given again' },
  reason: { type: 'string', about: 'only letters of this reason' },
  most: { type: 'string', about: 'at most so many' },
  rate: { type: 'string', about: 'letters a second (200)' },
  'no-wait': { type: 'boolean', about: 'does not wait for the end' },
};

const orderOf = (values: Given['values']) => {
  const ids = values.id as string[] | undefined;
  const [reason, most, rate] = [
    textOf(values, 'reason'),
    numberOf(values, 'most'),
    numberOf(values, 'rate'),
  ];
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(reason === undefined ? {} : { reason }),
    ...(most === undefined ? {} : { most }),
    ...(rate === undefined ? {} : { per_second: rate }),
  };
};

type Run = { id: string; status: string; affected: number | null; error: string | null };
const lookMs = 500;

const follow = async ({ client, values, say }: Given, begun: Answered): Promise<Outcome> => {
  let data = begun;
  let run = data.run as Run;
  while (run.status === 'running' && values['no-wait'] !== true) {
    await pause(lookMs);
    data = await client.get(pathTo`/runs/${run.id}`);
    run = data.run as Run;
    say(`${run.affected ?? 0} letters`);
  }
  const text = facts([
    ['run', run.id],
    ['status', run.status],
    ['letters', run.affected ?? 0],
    ...(run.error === null ? [] : [['note', run.error] as const]),
  ]);
  const asAsked = run.status === 'done' && run.error === null;
  return { data, text, ok: asAsked || run.status === 'running' };
};

const redrive: Command = {
  name: 'redrive',
  usage: 'JOB',
  about: 'Gives dead letters back to work: all, or those that options name.',
  least: 1,
  options: orderOptions,
  run: async (given) => {
    const [job = ''] = given.words;
    return follow(
      given,
      await given.client.post(pathTo`/dead/${job}/redrive`, orderOf(given.values)),
    );
  },
};

const purge: Command = {
  name: 'purge',
  usage: 'JOB',
  about: 'Throws dead letters away for good.',
  least: 1,
  options: { ...orderOptions, yes: { type: 'boolean', about: 'does not ask' } },
  run: async (given) => {
    const { client, words, values, ask } = given;
    const [job = ''] = words;
    const question = `Type ${job} to throw its dead letters away: `;
    const word = values.yes === true ? job : await ask(question);
    if (word === undefined) {
      throw new CommandError('Nobody is here to confirm: add --yes.', exitCodes.usage);
    }
    if (word.trim() !== job) throw new CommandError('Not confirmed; nothing was done.');
    const body = { ...orderOf(values), confirm: job };
    return follow(given, await client.post(pathTo`/dead/${job}/purge`, body));
  },
};

const stop: Command = {
  name: 'stop',
  usage: 'RUN',
  about: 'Ends an order over dead letters; what it has not settled stays dead.',
  least: 1,
  run: async ({ client, words: [id = ''] }) => {
    const data = await client.post(pathTo`/runs/${id}/stop`);
    return { data, text: 'It stops.\n' };
  },
};

const megabytes = (bytes: number): number => Math.round(bytes / 1_048_576);

const processes: Command = {
  name: 'processes',
  usage: '',
  about: 'Which processes are alive, since when, and what they need.',
  run: async ({ client }) => {
    const data = await client.get('/processes');
    const now = Date.now();
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.name, one.pid, one.state, one.version, span(now - Date.parse(one.started_at))],
      ...[megabytes(one.rss_bytes), one.event_loop_p99_ms, one.cpu],
      ...[one.clock_offsets_ms.redis, one.clock_offsets_ms.mysql],
    ]);
    const titles = [
      'NAME',
      'PID',
      'STATE',
      'VERSION',
      'UP',
      'MB',
      'LOOP MS',
      'CPU',
      'REDIS±',
      'MYSQL±',
    ];
    return { data, text: table(titles, rows), ok: rows.every(([, , state]) => state === 'alive') };
  },
};

const audit: Command = {
  name: 'audit',
  usage: '',
  about: 'What operators did, newest first.',
  options: { limit: { type: 'string', about: 'how many (50)' } },
  run: async ({ client, values }) => {
    const data = await client.get(`/audit?limit=${numberOf(values, 'limit') ?? 50}`);
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.at, one.actor, one.action, one.subject, one.status, one.affected, one.error],
    ]);
    const titles = ['AT', 'WHO', 'WHAT', 'TO', 'END', 'HOW MANY', 'NOTE'];
    return { data, text: table(titles, rows) };
  },
};

export const queueCommands: readonly Command[] = [
  ...[queues, deadList, redrive, purge, stop, processes, audit],
];
