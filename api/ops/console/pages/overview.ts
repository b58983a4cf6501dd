// The first page: what is wrong, worst first, then the figures of the whole house.
import { queuesNow } from '../../routes/queues.ts';
import { count } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage } from '../page.ts';
import { badge, type Tone } from '../parts.ts';
import type { Problem, Severity, Snapshot } from '../problem.ts';
import { section } from '../section.ts';
import { lookAround } from '../snapshot.ts';
import { queueTable } from './queues.ts';

const tones: Record<Severity, [Tone, string]> = {
  urgent: ['bad', 'Urgent'],
  warning: ['warn', 'Warning'],
  note: ['plain', 'Note'],
};

const problemItem = ({ severity, about, text, href, act }: Problem): Html =>
  html`<li class="${severity}" data-key="${about}">${badge(...tones[severity])}<p>${text}</p><a href="${href}">${act}<span class="quiet"> (${about})</span></a></li>`;

const problemList = (problems: readonly Problem[]): Html =>
  problems.length === 0
    ? html`<p class="fine">Nothing is wrong: engines answer, processes are alive, queues flow.</p>`
    : html`<ul class="problems">${problems.map(problemItem)}</ul>`;

/** Said aloud when it changes: what is urgent, without figures that change all the time. */
const spoken = (problems: readonly Problem[]): string => {
  const urgent = problems.filter(({ severity }) => severity === 'urgent');
  return urgent.length === 0 ? '' : `Urgent: ${urgent.map(({ about }) => about).join('; ')}.`;
};

const tile = (term: string, value: string, href: string): Html =>
  html`<div><dt><a href="${href}">${term}</a></dt><dd>${value}</dd></div>`;

const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

/** Of what nobody knows in part nobody knows the sum. */
const sumOf = (values: readonly (number | null)[] | undefined): number | undefined =>
  values?.every((each) => each !== null) ? sum(values) : undefined;

const tiles = ({ processes, queues }: Snapshot): Html => {
  const alive = processes?.filter(({ state }) => state === 'alive');
  const retrying = queues?.map(({ waiting }) => sum(waiting.map(({ ready }) => ready)));
  const shown = (value: number | undefined): string => (value === undefined ? '–' : count(value));
  return html`<dl class="figures">
${tile('Waiting', shown(queues && sum(queues.map(({ ready }) => ready))), '/ops/queues')}
${tile('In hand', shown(sumOf(queues?.map(({ unacked }) => unacked))), '/ops/queues')}
${tile('Retrying', shown(retrying && sum(retrying)), '/ops/queues')}
${tile('Dead letters', shown(queues && sum(queues.map(({ dead }) => dead))), '/ops/dead')}
${tile('Processes alive', shown(alive?.length), '/ops/processes')}
</dl>`;
};

export const overviewPage = opsPage({
  ...{ path: '/ops', menu: '/ops', title: 'Overview', everySeconds: 2 },
  body: async ({ app, run }) => {
    // At the same time: then both share one look at the broker.
    const [{ snapshot, problems }, queues] = await Promise.all([
      lookAround(app),
      section(
        'The queues',
        () => run(queuesNow),
        ({ items }) => queueTable(items),
      ),
    ]);
    return html`<p class="quiet" role="status" id="spoken">${spoken(problems)}</p>
<section id="problems" aria-label="What is wrong">${problemList(problems)}</section>
<h2>At a glance</h2><div id="tiles">${tiles(snapshot)}</div>
<h2>Queues</h2><section id="queues">${queues}</section>`;
  },
});
