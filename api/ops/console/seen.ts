// What the listener's operations answer, as the rules of problems look at it.
import type { channelsNow } from '../routes/channels.ts';
import type { platformNow } from '../routes/platform.ts';
import { minuteTime } from './format.ts';
import type { SeenChannel, Snapshot } from './problems.ts';

const recentMinutes = 3;
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

/** What goes wrong as long as calls of the last minutes failed; since the first minute of the row. */
export const errorOf = ({ last_hour: hour }: Channel): SeenChannel['error'] => {
  if (hour === null) return null;
  const recent = hour.minutes.slice(-recentMinutes);
  const failed = recent.reduce((sum, one) => sum + one.failed, 0);
  const calls = recent.reduce((sum, one) => sum + one.calls, 0);
  if (failed === 0) return null;
  const [worst] = [...hour.errors].sort((one, other) => other.count - one.count);
  const fine = hour.minutes.findLastIndex((one) => one.calls > 0 && one.failed === 0);
  const first = hour.minutes.slice(fine + 1).find((one) => one.failed > 0);
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
