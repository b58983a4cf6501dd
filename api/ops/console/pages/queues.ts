// The queues: every job at a glance, and one of them with its last hour and day.
import { fail } from '../../../../lib/kernel/errors.ts';
import { queuesNow } from '../../routes/queues.ts';
import { age, count, duration, figure } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, table } from '../parts.ts';
import { section } from '../section.ts';

type Answer = Awaited<ReturnType<typeof queuesNow.handle>>;
type Queue = Answer['items'][number];

const waitingOf = ({ waiting }: Queue): number =>
  waiting.reduce((sum, { ready }) => sum + ready, 0);

const deadOf = ({ job, dead }: Queue): Html =>
  dead === 0 ? html`0` : html`<a href="/ops/dead/${job}"><b class="warn">${count(dead)}</b></a>`;

const consumersOf = ({ consumers }: Queue): Html =>
  consumers === 0 ? badge('bad', 'nobody') : html`${count(consumers)}`;

export const queueTable = (items: readonly Queue[]): Html =>
  table(
    'Queues, one row for each job',
    [
      {
        head: 'Job',
        names: true,
        cell: ({ job }) => html`<a href="/ops/queues/${job}">${job}</a>`,
      },
      { head: 'Waiting', figures: true, cell: ({ ready }) => count(ready) },
      { head: 'Oldest', figures: true, cell: (one) => age(one) },
      { head: 'In hand', figures: true, cell: ({ unacked }) => figure(unacked) },
      { head: 'Retrying', figures: true, cell: (one) => count(waitingOf(one)) },
      { head: 'Dead', figures: true, cell: deadOf },
      { head: 'In, a second', figures: true, cell: (one) => figure(one.in_per_second) },
      { head: 'Out, a second', figures: true, cell: (one) => figure(one.out_per_second) },
      { head: 'Consumers', figures: true, cell: consumersOf },
    ],
    items,
    ({ job }) => job,
  );

const meaning = ({ source }: Answer): Html =>
  html`<p class="note">Waiting: nobody has taken it. In hand: a worker has it. Retrying: it failed and waits for its next try. Dead: given up. Depths are the broker’s own at this moment; ${
    source === 'management'
      ? 'in hand and rates are those of its management API.'
      : 'in hand is what the processes report, rates are means of the last five seconds.'
  }</p>`;

export const queuesPage = opsPage({
  ...{ path: '/ops/queues', menu: '/ops/queues', title: 'Queues', everySeconds: 2 },
  body: async ({ run }) =>
    section(
      'The queues',
      () => run(queuesNow),
      (found) => html`${queueTable(found.items)}${meaning(found)}`,
    ),
});

const plot = (job: string, title: string, span: string, given: Record<string, string>): Html =>
  html`<figure data-keep data-plot="/ops/api/queues/history?span=${span}" data-job="${job}" data-fields="${given.fields}" data-series="${given.series}" data-times="${given.times ?? '1'}" data-unit="${given.unit ?? ''}"><figcaption>${title} <span class="at"></span></figcaption><ul class="lines"></ul><div class="plot">Plots need a script.</div></figure>`;

const plots = (job: string, span: 'hour' | 'day'): Html => html`
${plot(job, 'Jobs', span, { fields: 'ready,unacked,waiting,dead', series: 'Waiting,In hand,Retrying,Dead' })}
${plot(job, 'Jobs a second', span, { fields: 'in,out', series: 'In,Out', unit: '/s' })}
${plot(job, 'Age of the oldest', span, { fields: 'age', series: 'Oldest', times: '0.001', unit: ' s' })}`;

const tile = (term: string, value: Html | string, more = ''): Html =>
  html`<div><dt>${term}</dt><dd>${value}${more && html`<small>${more}</small>`}</dd></div>`;

const rung = ({ seconds, ready }: Queue['waiting'][number]): string =>
  `${count(ready)} for ${duration(seconds * 1_000)}`;

const queueFacts = (queue: Queue): Html => html`<dl class="figures">
${tile('Waiting', count(queue.ready), queue.again > 0 ? `${count(queue.again)} not for the first time` : '')}
${tile('Oldest', age(queue))}
${tile('In hand', figure(queue.unacked))}
${tile(
  'Retrying',
  count(waitingOf(queue)),
  queue.waiting
    .filter(({ ready }) => ready > 0)
    .map(rung)
    .join(', '),
)}
${tile('Dead letters', deadOf(queue))}
${tile('In · out, a second', `${figure(queue.in_per_second)} · ${figure(queue.out_per_second)}`)}
${tile('Consumers', consumersOf(queue))}
</dl>`;

const body = async ({ run, params }: Visit) => {
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
  const content = html`<section id="facts">${shown}</section>
<h2>The last hour</h2><div class="plots">${plots(job, 'hour')}</div>
<h2>The last day</h2><div class="plots">${plots(job, 'day')}</div>`;
  return { title: job, content };
};

export const queuePage = opsPage({
  ...{ path: '/ops/queues/{job}', menu: '/ops/queues', title: 'One queue' },
  ...{ everySeconds: 2, plots: true, body },
});
