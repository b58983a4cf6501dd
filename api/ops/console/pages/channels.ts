// The channels: how each number and the bot fare, what they are refused with, and pausing them.
import { channelsNow, pauseChannel, resumeChannel } from '../../routes/channels.ts';
import { count, counted, moment, percent } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import {
  actionForm,
  askingButton,
  badge,
  emptyNote,
  facts,
  field,
  named,
  pages,
  type Tone,
} from '../parts.ts';
import { type PauseNotes, pauseNotes, pauseOf } from '../paused.ts';
import type { SeenChannel } from '../problem.ts';
import { section } from '../section.ts';
import { type Channel, classWords, errorOf, nameOf } from '../seen.ts';

const tones: Record<Channel['status'], Tone> = {
  ...{ ok: 'good', degraded: 'warn', paused: 'warn', down: 'bad' },
  ...{ not_configured: 'plain', unknown: 'plain' },
};

type Hour = NonNullable<Channel['last_hour']>;

const errorsOf = ({ errors, unknown }: Hour): Html => {
  const lines = [
    ...errors.map(
      ({ class: kind, code, count: n }) =>
        html`<li>${count(n)} × ${code === 0 ? 'not reached' : code}, ${classWords[kind] ?? kind}</li>`,
    ),
    ...(unknown > 0 ? [html`<li>${count(unknown)} × no answer in time</li>`] : []),
  ];
  return lines.length === 0 ? html`none` : html`<ul class="bare">${lines}</ul>`;
};

const latency = ({ p50_ms: half, p95_ms: most }: Hour): string =>
  half === null || most === null ? '–' : `half within ${half} ms, 95 % within ${most} ms`;

const lastHour = (hour: Hour) =>
  [
    ['Calls, last hour', count(hour.calls)],
    ['Accepted', hour.success_rate === null ? '–' : percent(hour.success_rate)],
    ['Errors, last hour', errorsOf(hour)],
    ['Latency', latency(hour)],
  ] as const;

type Target = {
  channel: Channel['channel'];
  /** Undefined: the whole channel. */
  number?: string;
  name: string;
  paused: SeenChannel['paused'];
};

const pauseForm = (target: Target, csrf: string | undefined): Html => {
  const { channel, number, name, paused } = target;
  const what = html`<input type="hidden" name="channel" value="${channel}">${number !== undefined && html`<input type="hidden" name="number" value="${number}">`}`;
  const verb = paused ? 'resume' : 'pause';
  const key = `${verb} ${channel} ${number ?? ''}`;
  const label = html`${paused ? 'Resume' : 'Pause'}<span class="quiet"> ${name}</span>`;
  const act = paused
    ? html`<button class="main">${label}</button>`
    : html`${field('Reason, for the others', html`<input name="note" maxlength="200" autocomplete="off">`)}${askingButton(label, { ask: `Pause ${name}? Nothing goes out over it; sends use the fallback or fail at once.`, yes: 'Pause' })}`;
  return actionForm(csrf, `/ops/channels/${verb}`, html`${what}${act}`, key);
};

const pausedLine = (paused: SeenChannel['paused']): Html | '' =>
  paused
    ? html`<p class="why">Paused since ${moment(paused.at)} by ${named(paused.by)}${paused.reason && html`: ${named(paused.reason)}`}</p>`
    : '';

const broken = (one: Channel): string => {
  if (one.broken_reason) return one.broken_reason;
  if (one.breaker.state === 'ok') return 'closed: calls are made';
  return one.breaker.state === 'unknown' ? '–' : `open: ${one.breaker.state}, calls are held back`;
};

/** What the calls of the last minutes say stands before what the breaker has not noticed. */
const stateBadge = (one: Channel, error: SeenChannel['error'], whole: boolean): Html => {
  if (whole && one.status === 'paused') return badge('warn', 'paused with all');
  if (one.status === 'ok' && error) return badge(error.most ? 'bad' : 'warn', 'fails');
  return badge(tones[one.status], one.status.replace('_', ' '));
};

const card = (one: Channel, target: Target, csrf: string | undefined, whole: boolean): Html => {
  const { last_hour: hour } = one;
  const error = one.status === 'paused' ? null : errorOf(one);
  const ownPause = pauseForm(target, csrf);
  return html`<article class="card" data-key="${one.id}"><h2>${nameOf(one)} ${stateBadge(one, error, whole)}</h2>
${error && html`<p class="why bad">It ${error.what} since ${error.since}: ${count(error.failed)} of ${counted(error.calls, 'call')} failed in the last three minutes.</p>`}
${whole ? '' : pausedLine(target.paused)}
${facts([
  ...(one.since === null ? [] : ([['In this state since', moment(one.since)]] as const)),
  ...(one.account
    ? ([
        ['Account', html`<a href="/ops/accounts/${one.account.id}">${named(one.account.name)}</a>`],
      ] as const)
    : []),
  ...(one.channel === 'whatsapp'
    ? ([['Quality', one.quality_rating ?? 'not known']] as const)
    : []),
  ...(hour === null ? ([['Last hour', 'not known while Redis is away']] as const) : lastHour(hour)),
  ['Breaker', broken(one)],
])}${whole || one.status === 'not_configured' ? '' : ownPause}</article>`;
};

const allOfWhatsapp = (target: Target, csrf: string | undefined): Html =>
  html`<article class="card wide" data-key="all"><h2>WhatsApp as a whole ${badge(target.paused ? 'warn' : 'good', target.paused ? 'paused' : 'on')}</h2>
${pausedLine(target.paused) || html`<p class="why">The shared number and the numbers of all customers.</p>`}${pauseForm(target, csrf)}</article>`;

type Answer = Awaited<ReturnType<typeof channelsNow.handle>>;

/** `all` stands before the first part only. */
const view = ({ app, caller, query }: Visit, found: Answer, notes: PauseNotes): Html => {
  const { items, next_before: next } = found;
  const isPart = query.has('before') || query.has('account');
  const csrf = caller.csrf;
  const whole = pauseOf(app, notes, 'whatsapp');
  const all: Target = { channel: 'whatsapp', name: 'WhatsApp as a whole', paused: whole };
  const cards = items.map((one) => {
    const own = one.channel === 'telegram' ? {} : { number: one.id };
    const paused = pauseOf(app, notes, one.channel, own.number);
    const target: Target = { channel: one.channel, name: nameOf(one), paused, ...own };
    return card(one, target, csrf, one.channel === 'whatsapp' && whole !== null);
  });
  const older = next === null ? undefined : `/ops/channels?before=${next}`;
  const none = isPart && items.length === 0 && emptyNote('No number is connected here.');
  return html`<div class="cards">${!isPart && allOfWhatsapp(all, csrf)}${cards}</div>${none}${pages(isPart ? '/ops/channels' : undefined, older)}`;
};

const body = (visit: Visit): Promise<Html> => {
  const looker = { caller: visit.caller, requestId: 'console' };
  const parts = ['before', 'account'].map((name) => [name, visit.query.get(name)] as const);
  const asked = Object.fromEntries(parts.filter(([, value]) => value));
  return section(
    'The channels',
    () => Promise.all([visit.run(channelsNow, { query: asked }), pauseNotes(visit.app, looker)]),
    ([found, notes]) => view(visit, found, notes),
  );
};

export const channelsPage = opsPage({
  ...{ path: '/ops/channels', menu: '/ops/channels', title: 'Channels', everySeconds: 3, body },
});

const titles: Record<string, string> = { whatsapp: 'WhatsApp', telegram: 'Telegram' };

const words = {
  pause: { done: 'is paused.', already: 'was paused already' },
  resume: { done: 'sends again.', already: 'was not paused' },
} as const;

const switching = (verb: 'pause' | 'resume') =>
  consoleForm({
    path: `/ops/channels/${verb}`,
    summary: verb === 'pause' ? 'Pauses a channel.' : 'Resumes a channel.',
    from: () => '/ops/channels',
    submit: async ({ run }, form) => {
      const number = form.get('number') ?? '';
      const asked = {
        ...{ channel: form.get('channel'), note: (form.get('note') ?? '').trim() },
        ...(number === '' ? {} : { number }),
      };
      const { changed } = await run(verb === 'pause' ? pauseChannel : resumeChannel, {
        body: asked,
      });
      const channel = titles[asked.channel ?? ''] ?? '';
      const what = number === '' ? channel : `${channel} number ${number}`;
      const { done, already } = words[verb];
      const said = changed ? `${what} ${done}` : `Nothing changed: ${what} ${already}.`;
      return { said, to: '/ops/channels' };
    },
  });

export const channelForms = [switching('pause'), switching('resume')];
