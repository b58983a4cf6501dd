// The channels: how each number and the bot fare, what they are refused with, and pausing them.
import { channelsNow, pauseChannel, resumeChannel } from '../../routes/channels.ts';
import { count, moment, percent } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, badge, facts, type Tone } from '../parts.ts';
import { section } from '../section.ts';
import { nameOf } from '../seen.ts';

type Channel = Awaited<ReturnType<typeof channelsNow.handle>>['items'][number];

const tones: Record<Channel['status'], Tone> = {
  ...{
    ok: 'good',
    degraded: 'warn',
    paused: 'warn',
    down: 'bad',
    not_configured: 'plain',
    unknown: 'plain',
  },
};

type Hour = NonNullable<Channel['last_hour']>;

const errorsOf = ({ errors }: Hour): Html =>
  errors.length === 0
    ? html`none`
    : html`${errors.map(({ class: kind, code, count: n }, index) => `${index > 0 ? ', ' : ''}${code} ${kind} × ${n}`)}`;

const ms = (value: number | null): string => (value === null ? '–' : `${value} ms`);

const lastHour = (hour: Hour) =>
  [
    ['Calls in the last hour', count(hour.calls)],
    ['Accepted', hour.success_rate === null ? '–' : percent(hour.success_rate)],
    ['Errors', errorsOf(hour)],
    ['Latency, half and 95 of 100', `${ms(hour.p50_ms)}, ${ms(hour.p95_ms)}`],
  ] as const;

const pauseForm = (one: Channel, csrf: string | undefined): Html => {
  const paused = one.status === 'paused';
  const number = one.kind === 'own' ? one.id : '';
  const what = html`<input type="hidden" name="channel" value="${one.channel}"><input type="hidden" name="number" value="${number}">`;
  const note = paused
    ? ''
    : html`<label class="field"><span>Why</span><input name="note" maxlength="200"></label>`;
  return actionForm(
    csrf,
    `/ops/channels/${paused ? 'resume' : 'pause'}`,
    html`${what}${note}<button>${paused ? 'Resume' : 'Pause'}<span class="quiet"> ${nameOf(one)}</span></button>`,
  );
};

const channelView = (one: Channel, csrf: string | undefined): Html => {
  const { last_hour: hour } = one;
  return html`<article data-key="${one.id}"><h2>${nameOf(one)} ${badge(tones[one.status], one.status.replace('_', ' '))}</h2>
${facts([
  ['Since', one.since === null ? '–' : moment(one.since)],
  [
    'Account',
    one.account
      ? html`<a href="/ops/accounts/${one.account.id}">${one.account.name}</a>`
      : 'the platform',
  ],
  ['Quality', one.quality_rating ?? '–'],
  ...(hour === null ? ([['The last hour', 'not known: Redis is away']] as const) : lastHour(hour)),
  ['Breaker', one.broken_reason ?? one.breaker.state],
])}${one.status === 'not_configured' ? '' : pauseForm(one, csrf)}</article>`;
};

const body = async ({ run, caller }: Visit): Promise<Html> =>
  html`<section id="all" data-live>${await section(
    'The channels',
    () => run(channelsNow),
    ({ items }) => html`${items.map((one) => channelView(one, caller.csrf))}`,
  )}</section>`;

export const channelsPage = opsPage({
  ...{ path: '/ops/channels', menu: '/ops/channels', title: 'Channels', everySeconds: 3, body },
});

const switching = (verb: 'pause' | 'resume') =>
  consoleForm({
    path: `/ops/channels/${verb}`,
    summary: verb === 'pause' ? 'Pauses a channel.' : 'Resumes a channel.',
    from: () => '/ops/channels',
    submit: async ({ run }, form) => {
      const number = form.get('number') ?? '';
      const asked = {
        ...{ channel: form.get('channel'), note: form.get('note') ?? '' },
        ...(number === '' ? {} : { number }),
      };
      await run(verb === 'pause' ? pauseChannel : resumeChannel, { body: asked });
      const what = number === '' ? asked.channel : `number ${number}`;
      const said = verb === 'pause' ? `${what} is paused.` : `${what} sends again.`;
      return { said, to: '/ops/channels' };
    },
  });

export const channelForms = [switching('pause'), switching('resume')];
