// Which processes there are, how they feel, what they do, whose clock is off; and the engines they stand on.
import { health, processes } from '../../routes/overview.ts';
import { count, counted, duration, figure, megabytes, moment, percent } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, table } from '../parts.ts';
import { section } from '../section.ts';

type Health = Awaited<ReturnType<typeof health.handle>>;
type Process = Awaited<ReturnType<typeof processes.handle>>['items'][number];

const engineNames = { redis: 'Redis', mysql: 'MySQL', rabbitmq: 'RabbitMQ' } as const;

const enginesView = ({ checks }: Health): Html =>
  table(
    'Engines',
    [
      { head: 'Engine', names: true, cell: ([name]) => engineNames[name] },
      {
        head: 'State',
        cell: ([, { status }]) =>
          status === 'ok' ? badge('good', 'answers') : badge('bad', 'does not answer'),
      },
      {
        ...{ head: 'Latency', figures: true },
        cell: ([, { latency_ms: ms }]) => (ms === null ? '–' : `${ms} ms`),
      },
    ],
    Object.entries(checks) as [keyof typeof checks, Health['checks']['redis']][],
    ([name]) => name,
  );

/** What somebody should look at comes first. */
const rank = ({ state, connected }: Process): number => {
  if (state !== 'alive') return 0;
  return connected.redis && connected.rabbitmq ? 2 : 1;
};

const byTrouble = (one: Process, other: Process): number =>
  rank(one) - rank(other) || one.id.localeCompare(other.id);

const stateOf = ({ state, silent_ms: silent, connected }: Process): Html => {
  if (state !== 'alive') return badge('bad', `silent for ${duration(silent)}`);
  if (!connected.redis) return badge('warn', 'no Redis');
  return connected.rabbitmq ? badge('good', 'alive') : badge('warn', 'no RabbitMQ');
};

const doingOf = ({ doing }: Process): string => {
  const busy = Object.entries(doing.jobs).filter(([, inHand]) => inHand > 0);
  const jobs = busy.map(([job, inHand]) => `${inHand} × ${job}`);
  const requests = doing.requests > 0 ? [counted(doing.requests, 'request')] : [];
  const works = Object.keys(doing.jobs).length;
  const rests = works > 0 ? `waits for ${counted(works, 'job kind')}` : 'rests';
  return [...requests, ...jobs].join(', ') || rests;
};

const offset = (ms: number | null): string =>
  ms === null ? '–' : `${ms > 0 ? '+' : ms < 0 ? '−' : ''}${Math.abs(ms)} ms`;

const clocks = ({ clock_offsets_ms: { redis, mysql } }: Process): Html =>
  html`<span class="clock">Redis ${offset(redis)}</span> <span class="clock">MySQL ${offset(mysql)}</span>`;

const processTable = (items: readonly Process[]): Html =>
  items.length === 0
    ? emptyNote('No process has reported in the last ten minutes.')
    : table(
        'Processes',
        [
          {
            ...{ head: 'Process', names: true, as: 'wide' },
            cell: (one) =>
              html`${one.name} <small>${one.version}</small> <small class="mono">${one.host}:${one.pid}</small>`,
          },
          { head: 'State', cell: stateOf },
          { head: 'Doing', cell: doingOf },
          { head: 'Since', cell: (one) => moment(one.started_at) },
          { head: 'Memory', figures: true, cell: (one) => megabytes(one.rss_bytes) },
          { head: 'CPU', figures: true, cell: (one) => percent(one.cpu) },
          {
            head: 'Loop delay',
            figures: true,
            cell: (one) => `${figure(one.event_loop_p99_ms)} ms`,
          },
          { head: 'Clocks', cell: clocks },
        ],
        items.toSorted(byTrouble),
        ({ id }) => id,
      );

const counts = (items: readonly Process[]): Html => {
  const alive = items.filter(({ state }) => state === 'alive');
  const lost = items.length - alive.length;
  return html`<p class="lead"><strong>${count(alive.length)} alive</strong>${lost > 0 ? `, ${count(lost)} silent` : ''}. A process that falls silent is shown for ten minutes. CPU is a share of one core; 99 of 100 turns of the event loop were not later than the loop delay; a clock with + is ahead of the process’s.</p>`;
};

const body = async ({ run }: Visit): Promise<Html> => html`<section id="all">
${await section(
  'The processes',
  () => run(processes),
  ({ items }) => html`${counts(items)}${processTable(items)}`,
)}</section>
<h2 id="engines">Engines</h2>${await section('The engines', () => run(health), enginesView)}`;

export const processesPage = opsPage({
  ...{ path: '/ops/processes', menu: '/ops/processes', title: 'Processes', everySeconds: 2, body },
});
