// The queues: every job at a glance, and one of them with its last hour and day.
import { fail } from '../../../../lib/kernel/errors.ts';
import { queuesNow } from '../../routes/queues.ts';
import { count, duration, figure } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, facts, table } from '../parts.ts';
import { section } from '../section.ts';

type Queue = Awaited<ReturnType<typeof queuesNow.handle>>['items'][number];

const ageOf = ({ oldest_age_ms: age }: Queue): string => (age === null ? '–' : duration(age));

const waitingOf = ({ waiting }: Queue): number =>
  waiting.reduce((sum, { ready }) => sum + ready, 0);

const deadOf = ({ job, dead }: Queue): Html =>
  dead === 0 ? html`0` : html`<a href="/ops/dead/${job}">${count(dead)}</a>`;

const consumersOf = ({ consumers }: Queue): Html =>
  consumers === 0 ? badge('bad', 'nobody') : html`${count(consumers)}`;

const queueTable = (items: readonly Queue[]): Html =>
  table(
    'Queues, one row for each job',
    [
      {
        head: 'Job',
        names: true,
        cell: ({ job }) => html`<a href="/ops/queues/${job}">${job}</a>`,
      },
      { head: 'Waiting', figures: true, cell: ({ ready }) => count(ready) },
      { head: 'In hand', figures: true, cell: ({ unacked }) => figure(unacked) },
      { head: 'Oldest', figures: true, cell: ageOf },
      { head: 'In /s', figures: true, cell: (one) => figure(one.in_per_second) },
      { head: 'Out /s', figures: true, cell: (one) => figure(one.out_per_second) },
      { head: 'Retrying', figures: true, cell: (one) => count(waitingOf(one)) },
      { head: 'Dead', figures: true, cell: deadOf },
      { head: 'Consumers', figures: true, cell: consumersOf },
    ],
    items,
    ({ job }) => job,
  );

export const queuesPage = opsPage({
  ...{ path: '/ops/queues', menu: '/ops/queues', title: 'Queues', everySeconds: 2 },
  body: async ({ run }) =>
    html`<section id="all" data-live>${await section(
      'The queues',
      () => run(queuesNow),
      ({ items }) => queueTable(items),
    )}</section>`,
});

const plot = (job: string, title: string, span: string, given: Record<string, string>): Html =>
  html`<figure data-plot="/ops/api/queues/history?span=${span}" data-job="${job}" data-fields="${given.fields}" data-series="${given.series}" data-times="${given.times ?? '1'}"><figcaption>${title}</figcaption><div class="plot" data-keep>Plots need a script.</div></figure>`;

const plots = (job: string, span: 'hour' | 'day'): Html => html`
${plot(job, `Jobs, last ${span}`, span, { fields: 'ready,unacked,waiting,dead', series: 'Waiting,In hand,Retrying,Dead' })}
${plot(job, `Jobs a second, last ${span}`, span, { fields: 'in,out', series: 'In,Out' })}
${plot(job, `Oldest job in seconds, last ${span}`, span, { fields: 'age', series: 'Oldest', times: '0.001' })}`;

const queueFacts = (queue: Queue): Html => html`${facts([
  ['Waiting', `${count(queue.ready)} (${count(queue.fresh)} fresh, ${count(queue.again)} again)`],
  ['In hand', figure(queue.unacked)],
  ['Oldest', ageOf(queue)],
  ['In and out a second', `${figure(queue.in_per_second)} and ${figure(queue.out_per_second)}`],
  ['Consumers', consumersOf(queue)],
  ['Dead letters', deadOf(queue)],
])}
<h2>Waiting for another try</h2>${table(
  'The ladder of retries',
  [
    { head: 'Wait', names: true, cell: ({ seconds }) => duration(seconds * 1_000) },
    { head: 'Jobs', figures: true, cell: ({ ready }) => count(ready) },
  ],
  queue.waiting,
  ({ seconds }) => String(seconds),
)}`;

const body = async ({ run, params }: Visit): Promise<Html> => {
  const job = params.job ?? '';
  const shown = await section(
    'The queue',
    () => run(queuesNow),
    ({ items }) => {
      const queue = items.find((one) => one.job === job);
      if (!queue) throw fail('NOT_FOUND');
      return queueFacts(queue);
    },
  );
  return html`<section id="facts" data-live>${shown}</section>
<h2>The last hour</h2><div class="plots">${plots(job, 'hour')}</div>
<h2>The last day</h2><div class="plots">${plots(job, 'day')}</div>`;
};

export const queuePage = opsPage({
  ...{ path: '/ops/queues/{job}', menu: '/ops/queues', everySeconds: 2, plots: true, body },
  title: ({ params }) => params.job ?? 'Queue',
});
