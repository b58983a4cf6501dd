// What the listener's operations answer, as the rules of problems look at it.
import type { channelsNow } from '../routes/channels.ts';
import type { platformNow } from '../routes/platform.ts';
import { minuteTime } from './format.ts';
import type { SeenChannel, Snapshot } from './problem.ts';

/** Of a hundred calls to somebody else's service one fails now and then. */
const worthAWord = 0.02;
/** So many calls, half of them in vain, are no mishap. */
const enoughCalls = 3;

export type Channel = Awaited<ReturnType<typeof channelsNow.handle>>['items'][number];
type Hour = NonNullable<Channel['last_hour']>;
type Platform = Awaited<ReturnType<typeof platformNow.handle>>;

/** What a channel is called. */
export const nameOf = ({ channel, kind, display_phone_number: phone, id }: Channel): string => {
  if (channel === 'telegram') return 'Telegram';
  return kind === 'shared' ? 'WhatsApp (shared number)' : `WhatsApp ${phone ?? id}`;
};

const stateOf = ({ status }: Channel): SeenChannel['state'] =>
  status === 'not_configured' || status === 'unknown' ? 'off' : status;

/** The classes of refusals in words. */
export const classWords: Record<string, string> = {
  retry: 'trouble on its side',
  throttle: 'we send too fast',
  pair: 'too much to one recipient',
  unreachable: 'recipient not reachable',
  template: 'template not usable',
  broken: 'token, rights or payment',
  bug: 'our request is wrong',
};

/** `answers 131000 (trouble on its side)`; code 0 is a call that never left. */
const worded = ({ code, class: kind }: Hour['errors'][number]): string =>
  code === 0 ? 'cannot be reached' : `answers ${code} (${classWords[kind] ?? kind})`;

/** What goes wrong while a share worth a word of the last calls failed; since the first minute of the row. */
export const errorOf = ({ last_hour: hour }: Channel): SeenChannel['error'] => {
  if (hour === null) return null;
  const { calls, troubled: failed, errors } = hour.recent;
  if (failed === 0 || failed < calls * worthAWord) return null;
  const [commonest] = errors;
  const silent = failed - errors.reduce((sum, one) => sum + one.count, 0);
  const worst = commonest && commonest.count >= silent ? commonest : undefined;
  const fine = hour.minutes.findLastIndex((one) => one.calls > 0 && one.troubled === 0);
  const first = hour.minutes.slice(fine + 1).find((one) => one.troubled > 0);
  return {
    what: worst === undefined ? 'gives no answer in time' : worded(worst),
    since: minuteTime(new Date(first?.at ?? 0).toISOString()),
    ...{ failed, calls, most: calls >= enoughCalls && failed >= calls / 2 },
  };
};

/** A channel as the rules see it; `paused` tells who paused it. */
export const seenChannel = (channel: Channel, paused: SeenChannel['paused']): SeenChannel => ({
  ...{ name: nameOf(channel), job: `${channel.channel}.send`, state: stateOf(channel), paused },
  since: channel.since,
  error: paused ? null : errorOf(channel),
});

const titles = { shared_number: 'The shared number', trial: 'The free trial' } as const;

/** What is switched off for everybody. */
export const seenSwitches = ({ switches }: Platform): Snapshot['switches'] =>
  switches
    .filter(({ paused }) => paused)
    .map(({ name }) => ({ name, text: `${titles[name]} is paused for everybody.` }));

/** The last comparison of the books, when somebody told of one. */
export const seenBooks = ({ books }: Platform): Snapshot['books'] =>
  books?.at ? { at: books.at, mismatches: books.mismatches } : null;
