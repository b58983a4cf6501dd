// Dead letters: which jobs have some, why they died, and how the orders over them go.
import { jobs } from '../../../../lib/jobs.ts';
import { second } from '../../../../lib/kernel/clock.ts';
import { fail } from '../../../../lib/kernel/errors.ts';
import type { OpsApp } from '../../../../lib/ops-app.ts';
import { auditLog } from '../../routes/audit.ts';
import { deadLetters } from '../../routes/dead.ts';
import { queuesNow } from '../../routes/queues.ts';
import { count, counted, duration } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { emptyNote, table } from '../parts.ts';
import { attempt, notShown, section } from '../section.ts';
import { lookAround } from '../snapshot.ts';
import { type Dead, letterForm } from './letters.ts';
import { isOrder, running, runTable } from './orders.ts';

export const deadPage = opsPage({
  ...{ path: '/ops/dead', menu: '/ops/dead', title: 'Dead letters', everySeconds: 3 },
  body: async ({
    run,
  }) => html`<p class="lead">A dead letter is a job that was given up. Nothing throws it away but you.</p>
${await section(
  'The dead letters',
  () => run(queuesNow),
  ({ items }) => {
    const some = items.filter(({ dead }) => dead > 0);
    if (some.length === 0) return emptyNote('There are no dead letters.');
    return table(
      'Jobs with dead letters',
      [
        {
          ...{ head: 'Job', names: true },
          cell: ({ job }) => html`<a href="/ops/dead/${job}">${job}</a>`,
        },
        { head: 'Dead letters', figures: true, cell: ({ dead }) => count(dead) },
      ],
      some,
      ({ job }) => job,
    );
  },
)}`,
});

const tab = (given: { job: string; reason: string; here: string; text: string }): Html =>
  html`<li><a href="/ops/dead/${given.job}${given.reason && `?reason=${encodeURIComponent(given.reason)}`}"${given.reason === given.here && html` aria-current="true"`}>${given.text}</a></li>`;

const reasonTabs = ({ job, reasons, scanned, total }: Dead, here: string): Html => {
  const some = Object.entries(reasons).sort(([, one], [, other]) => other - one);
  if (some.length < 2 && here === '') return html``;
  const names =
    some.some(([reason]) => reason === here) || here === '' ? some : [...some, [here, 0] as const];
  return html`<ul class="tabs" aria-label="Reasons">${tab({ job, here, reason: '', text: `All ${count(total)}` })}${names.map(([reason, n]) => tab({ job, here, reason, text: `${reason} ${count(n)}` }))}</ul>${
    scanned < total ? html`<p class="note">Reasons of the oldest ${count(scanned)}.</p>` : ''
  }`;
};

/** What is redriven to a channel that sends nothing fails at once: said before somebody does it. */
const warning = async ({ app }: Visit, job: string): Promise<Html | ''> => {
  const { snapshot } = await lookAround(app);
  const channel = snapshot.channels?.find((one) => one.job === job && one.paused);
  return channel
    ? html`<p class="alarm">${channel.name} is paused: what is redriven now fails at once. <a href="/ops/channels">Resume it</a> first.</p>`
    : '';
};

const summary = ({ total, oldest_at: oldest }: Dead, now: number): Html =>
  html`<p class="lead"><strong>${counted(total, 'dead letter')}</strong>${
    oldest === null
      ? ''
      : `, the oldest dead for ${duration(Math.max(0, now - Date.parse(oldest)))}`
  }.</p>`;

/** The most one look brings; pages are cut from it. */
const lookMost = 500;
/** A look takes up to two thousand letters in hand for a moment: pages share it until their number changes. */
const lookGoodMs = 20 * second;
const looksMost = 10;
/** Letters go back in the background: for as long, their number says nothing. */
const settlesMs = 2.5 * second;

type Look = { at: number; total: number; dead: Dead };
const looks = new WeakMap<OpsApp, Map<string, Look>>();

const looked = async ({ app, run }: Visit, job: string, reason: string): Promise<Dead> => {
  const known = looks.get(app) ?? new Map<string, Look>();
  looks.set(app, known);
  const { items } = await run(queuesNow);
  const total = items.find((one) => one.job === job)?.dead ?? 0;
  const before = known.get(`${job} ${reason}`);
  const at = app.clock.now();
  const goodMs = before?.total === total ? lookGoodMs : settlesMs;
  if (before && at - before.at < goodMs) return before.dead;
  const query = { limit: lookMost, ...(reason ? { reason } : {}) };
  const dead = await run(deadLetters, { params: { job }, query });
  // Reasons come from addresses: only the newest looks are kept.
  known.delete(`${job} ${reason}`);
  known.set(`${job} ${reason}`, { at: app.clock.now(), total: dead.total, dead });
  for (const [oldest] of [...known].slice(0, -looksMost)) known.delete(oldest);
  return dead;
};

const letters = async (visit: Visit, job: string): Promise<Html> => {
  const { app, query, caller } = visit;
  const reason = query.get('reason') ?? '';
  const found = await attempt(() => looked(visit, job, reason));
  if ('why' in found) return notShown('The dead letters', found.why);
  const dead = found.value;
  if (dead.total === 0) return emptyNote('There are no dead letters.');
  const page = Math.max(1, Math.floor(Number(query.get('page') ?? 1)) || 1);
  return html`${summary(dead, app.clock.now())}${await warning(visit, job)}${reasonTabs(dead, reason)}${letterForm(dead, { reason, page, csrf: caller.csrf })}`;
};

const body = async (visit: Visit) => {
  const { run, params, caller } = visit;
  const job = params.job ?? '';
  if (!jobs.some(({ name }) => name === job)) throw fail('NOT_FOUND');
  const orders = await attempt(() => run(auditLog, { query: { subject: job, limit: 20 } }));
  const now =
    'value' in orders ? orders.value.items.find(({ status }) => status === 'running') : undefined;
  // Looks wait for an order that has letters in hand: while one runs, it is what there is to see.
  const first = now
    ? await section(
        'The order',
        () => running(visit, job, now.id),
        (shown) => shown,
      )
    : await letters(visit, job);
  const content = html`<p class="crumb"><a href="/ops/dead">All dead letters</a> · <a href="/ops/queues/${job}">The queue</a></p><section id="letters">${first}</section>
<h2>Orders</h2><section id="runs">${'value' in orders ? runTable(orders.value.items.filter(isOrder).slice(0, 10), job, caller.csrf) : notShown('The orders', orders.why)}</section>`;
  return { title: `Dead letters of ${job}`, content };
};

export const deadJobPage = opsPage({
  ...{ path: '/ops/dead/{job}', menu: '/ops/dead', title: 'Dead letters of a job' },
  ...{ everySeconds: 3, body },
});
