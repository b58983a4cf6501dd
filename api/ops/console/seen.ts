// What the listener's operations answer, as the rules of problems look at it.
import type { channelsNow } from '../routes/channels.ts';
import type { platformNow } from '../routes/platform.ts';
import { counted } from './format.ts';
import type { SeenChannel, Snapshot } from './problems.ts';

const recentMinutes = 3;

type Channel = Awaited<ReturnType<typeof channelsNow.handle>>['items'][number];
type Platform = Awaited<ReturnType<typeof platformNow.handle>>;

/** What a channel is called. */
export const nameOf = ({ channel, kind, display_phone_number: phone, id }: Channel): string => {
  if (channel === 'telegram') return 'Telegram';
  return kind === 'shared' ? 'WhatsApp (shared number)' : `WhatsApp ${phone ?? id}`;
};

const stateOf = ({ status }: Channel): SeenChannel['state'] =>
  status === 'not_configured' || status === 'unknown' ? 'off' : status;

/** What it is refused with, as long as calls of the last minutes failed; since the first minute of the row. */
const errorOf = ({ last_hour: hour }: Channel): SeenChannel['error'] => {
  if (hour === null) return null;
  const [worst] = [...hour.errors].sort((one, other) => other.count - one.count);
  const lately = hour.minutes.slice(-recentMinutes).some(({ failed }) => failed > 0);
  if (worst === undefined || !lately) return null;
  const fine = hour.minutes.findLastIndex(({ calls, failed }) => calls > 0 && failed === 0);
  const first = hour.minutes.slice(fine + 1).find(({ failed }) => failed > 0);
  const text = `${worst.class}, ${counted(worst.count, 'time')} in the last hour`;
  return { code: String(worst.code), text, since: new Date(first?.at ?? 0).toISOString() };
};

/** A channel as the rules see it. */
export const seenChannel = (channel: Channel): SeenChannel => ({
  ...{ name: nameOf(channel), job: `${channel.channel}.send`, state: stateOf(channel) },
  since: channel.since,
  paused:
    channel.status === 'paused'
      ? { by: 'an operator', reason: '', at: channel.since ?? new Date(0).toISOString() }
      : null,
  error: channel.status === 'paused' ? null : errorOf(channel),
});

const titles = { shared_number: 'The shared number', trial: 'The free trial' } as const;

/** What is switched off for everybody. */
export const seenSwitches = ({ switches }: Platform): Snapshot['switches'] =>
  switches
    .filter(({ paused }) => paused)
    .map(({ name }) => ({ name, text: `${titles[name]} is paused for everybody.` }));
