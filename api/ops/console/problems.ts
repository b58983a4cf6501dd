// What is wrong, in words, worst first, and where one acts on it: pure decisions over what the listener knows.

import { jobs } from '../../../lib/jobs.ts';
import { minute, second } from '../../../lib/kernel/clock.ts';
import { age as ageOf, count, counted, duration, momentText } from './format.ts';
import { ofPlatform } from './platform-problems.ts';
import type {
  Problem,
  SeenChannel,
  SeenProcess,
  SeenQueue,
  Severity,
  Snapshot,
} from './problem.ts';

const slowLoopMs = 250;
const clockApartMs = second;
const farApartMs = 5 * second;
/** How old the oldest job may be before somebody should know: codes are waited for, the rest is not. */
const patienceMs = (job: string): number => (job.endsWith('.send') ? 3 * second : minute);

const engines = {
  redis: ['Redis', 'Sends, verifies and logins are refused with 503 until it is back.'],
  rabbitmq: ['RabbitMQ', 'Nothing is sent until it is back.'],
  mysql: ['MySQL', 'New accounts, prices and reports wait until it is back.'],
} as const;

const ofEngines = ({ checks }: Snapshot): Problem[] =>
  Object.entries(engines).flatMap(([name, [title, effect]]) =>
    checks === undefined || checks[name as keyof typeof engines].status === 'ok'
      ? []
      : [
          {
            severity: 'urgent',
            about: `engine ${name}`,
            text: `${title} does not answer. ${effect}`,
            href: '/ops/processes#engines',
            act: 'See the engines',
          },
        ],
  );

/** Not knowing is a problem of its own: an engine that is away explains it, else somebody must look. */
const ofUnseen = (snapshot: Snapshot): Problem[] => {
  const { unseen = [] } = snapshot;
  if (unseen.length === 0 || ofEngines(snapshot).length > 0) return [];
  const reasons = [...new Set(unseen.map(({ why }) => why))].join(' ');
  return [
    {
      severity: 'urgent',
      about: 'unseen',
      text: `Nobody knows how these are: ${unseen.map(({ what }) => what).join(', ')}. ${reasons}`,
      href: '/ops/processes#engines',
      act: 'See the engines',
    },
  ];
};

const acting = (about: string, severity: Severity, text: string): Problem => ({
  ...{ about, severity, text, href: '/ops/processes', act: 'See the processes' },
});

const clockProblem = (process: SeenProcess): Problem[] =>
  Object.entries(process.clock_offsets_ms).flatMap(([engine, offset]) => {
    const apart = Math.abs(offset ?? 0);
    if (apart < clockApartMs) return [];
    const way = (offset ?? 0) > 0 ? 'behind' : 'ahead of';
    const title = engine === 'redis' ? 'Redis' : 'MySQL';
    const text = `The clock of ${process.id} is ${(apart / second).toFixed(1)} s ${way} ${title}’s. Windows and times of codes are off by as much.`;
    return [acting(`clock ${process.id}`, apart >= farApartMs ? 'urgent' : 'warning', text)];
  });

const forwardedProblem = ({ id, forwarded_ignored: ignored }: SeenProcess): Problem[] => {
  const text = `${id} gets requests with X-Forwarded-For, but TRUSTED_PROXIES is not set: all callers count as one address, and share its limits.`;
  return ignored ? [acting(`forwarded ${id}`, 'warning', text)] : [];
};

const ofLiving = (process: SeenProcess): Problem[] => {
  const away = Object.entries(process.connected).filter(([, there]) => !there);
  const late = process.event_loop_p99_ms;
  return [
    ...away.map(([engine]) =>
      acting(
        `connection ${process.id} ${engine}`,
        'warning',
        `${process.id} has no connection to ${engine === 'redis' ? 'Redis' : 'RabbitMQ'}.`,
      ),
    ),
    ...(late >= slowLoopMs
      ? [
          acting(
            `loop ${process.id}`,
            'warning',
            `${process.id} is overloaded: its event loop runs ${duration(late)} late.`,
          ),
        ]
      : []),
    ...clockProblem(process),
    ...forwardedProblem(process),
  ];
};

const ofProcess = (process: SeenProcess): Problem[] =>
  process.state === 'alive'
    ? ofLiving(process)
    : [
        acting(
          `lost ${process.id}`,
          'warning',
          `${process.id} has been silent for ${duration(process.silent_ms)}: it ended without saying so, or hangs.`,
        ),
      ];

const ofProcesses = ({ processes }: Snapshot): Problem[] => {
  if (processes === undefined) return [];
  const living = processes.filter(({ state }) => state === 'alive');
  const apiThere = living.some(({ name }) => name === 'api');
  const worked = new Set(living.flatMap(({ doing }) => Object.keys(doing.jobs)));
  const idle = jobs.map(({ name }) => name).filter((name) => !worked.has(name));
  return [
    ...(apiThere
      ? []
      : [acting('no api', 'urgent', 'No API process is alive: customers get no answer.')]),
    ...(idle.length === 0
      ? []
      : [acting('no worker', 'urgent', `No living process works on ${idle.join(', ')}.`)]),
    ...processes.flatMap(ofProcess),
  ];
};

const troubleOf = (snapshot: Snapshot, job: string): string => {
  const channel = snapshot.channels?.find((one) => one.job === job);
  if (channel?.paused) return `; ${channel.name} is paused`;
  if (!channel?.error) return '';
  return `; ${channel.name} ${channel.error.what} since ${channel.error.since}`;
};

const waitingOf = ({ waiting }: SeenQueue): number =>
  waiting.reduce((sum, { ready }) => sum + ready, 0);

const ofBacklog = (snapshot: Snapshot, queue: SeenQueue): Problem[] => {
  const { job, ready, oldest_age_ms: age } = queue;
  const retrying = waitingOf(queue);
  const old = age !== null && age >= patienceMs(job);
  if (!old && retrying === 0) return [];
  const parts = [
    ...(ready > 0 ? [`${counted(ready, 'job waits', 'jobs wait')}`] : []),
    ...(retrying > 0 ? [`${counted(retrying, 'job waits', 'jobs wait')} for another try`] : []),
    ...(age !== null && ready > 0 ? [`oldest ${ageOf(queue)}`] : []),
  ];
  return [
    {
      severity: job.endsWith('.send') && old ? 'urgent' : 'warning',
      about: `queue ${job}`,
      text: `${job}: ${parts.join(', ')}${troubleOf(snapshot, job)}.`,
      href: `/ops/queues/${job}`,
      act: 'See the queue',
    },
  ];
};

const ofQueues = (snapshot: Snapshot): Problem[] =>
  (snapshot.queues ?? []).flatMap((queue) => [
    ...ofBacklog(snapshot, queue),
    ...(queue.dead > 0
      ? [
          {
            severity: 'warning' as const,
            about: `dead ${queue.job}`,
            text: `${queue.job}: ${counted(queue.dead, 'dead letter')}${troubleOf(snapshot, queue.job)}.`,
            href: `/ops/dead/${queue.job}`,
            act: 'Look and redrive',
          },
        ]
      : []),
  ]);

const channelText = ({ name, state, since, paused, error }: SeenChannel): string | undefined => {
  if (paused) {
    const why = paused.reason === '' ? '' : `: ${paused.reason}`;
    return `${name} is paused since ${momentText(paused.at)} by ${paused.by}${why}. Nothing goes out over it.`;
  }
  if (error) {
    const { what, failed, calls } = error;
    return `${name} ${what} since ${error.since}: ${count(failed)} of ${counted(calls, 'call')} failed in the last three minutes.`;
  }
  const when = since === null ? '' : ` since ${momentText(since)}`;
  return state === 'degraded' || state === 'down' ? `${name} is ${state}${when}.` : undefined;
};

const channelSeverity = ({ paused, state, error }: SeenChannel): Severity =>
  !paused && (state === 'down' || error?.most) ? 'urgent' : 'warning';

const ofChannels = ({ channels }: Snapshot): Problem[] =>
  (channels ?? []).flatMap((channel) => {
    const text = channelText(channel);
    if (text === undefined) return [];
    const severity = channelSeverity(channel);
    const act = channel.paused ? 'Resume' : 'See the channel';
    return [
      { ...{ severity, about: `channel ${channel.name}`, text }, href: '/ops/channels', act },
    ];
  });

const ranks: readonly Severity[] = ['urgent', 'warning', 'note'];

/** So many of one kind are told one by one. */
const toldApart = 4;

/** Forty lost processes are one problem, told by the first of them. */
const crowded = (problems: readonly Problem[]): Problem[] => {
  const kinds = Map.groupBy(
    problems,
    ({ severity, about }) => `${severity} ${about.split(' ')[0]}`,
  );
  return [...kinds.values()].flatMap((all) => {
    const [first] = all;
    if (first === undefined || all.length <= toldApart) return all;
    return [{ ...first, text: `${first.text} And ${count(all.length - 1)} more like this.` }];
  });
};

/** What is wrong, the worst first. */
export const problemsOf = (snapshot: Snapshot): Problem[] =>
  crowded(
    [ofEngines, ofUnseen, ofChannels, ofQueues, ofProcesses, ofPlatform].flatMap((look) =>
      look(snapshot),
    ),
  ).sort((a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity));
