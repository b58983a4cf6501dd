// Figures and times as people read them.
import { day, hour, minute, second } from '../../../lib/kernel/clock.ts';
import { type Html, html } from './html.ts';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });

/** 12,345 */
export const count = (value: number): string => whole.format(value);

/** `1 job`, `2 jobs`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** A figure that may be unknown. */
export const figure = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : precise.format(value);

/** A share of 1 as per cent. */
export const percent = (share: number): string => `${precise.format(share * 100)} %`;

const steps = [
  [day, 'd'],
  [hour, 'h'],
  [minute, 'min'],
  [second, 's'],
] as const;

/** `31 s`, `4 min`, `2 h`, `3 d`: one unit is enough at a glance. */
export const duration = (ms: number): string => {
  const [size, unit] = steps.find(([each]) => ms >= each) ?? [1, 'ms'];
  return `${Math.floor(ms / size)} ${unit}`;
};

type Aged = { oldest_age_ms: number | null; oldest_age_is_least: boolean };

/** The age of the oldest, which may not be there or not be known; what was kept may not reach back to when it came. */
export const age = ({ oldest_age_ms: ms, oldest_age_is_least: least }: Aged): string =>
  ms === null || ms === 0 ? '–' : `${least ? 'over ' : ''}${duration(ms)}`;

/** `12.3 MB` */
export const megabytes = (bytes: number): string => `${precise.format(bytes / 1_000_000)} MB`;

/** `0.05 USD`; amounts have up to six decimals. */
export const usd = (amount: number): string =>
  `${new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 6 }).format(amount)} USD`;

const months = 'JanFebMarAprMayJunJulAugSepOctNovDec';

/** `21 Nov 09:12:31`, UTC: a time alone reads as today's. */
export const momentText = (at: string): string => {
  const iso = new Date(at).toISOString();
  const month = months.slice(3 * Number(iso.slice(5, 7)) - 3, 3 * Number(iso.slice(5, 7)));
  return `${Number(iso.slice(8, 10))} ${month} ${iso.slice(11, 19)}`;
};

/** `09:12`, UTC. */
export const minuteTime = (at: string): string => new Date(at).toISOString().slice(11, 16);

/** The same as an element; the whole time stands in its title. */
export const moment = (at: string | null | undefined): Html => {
  if (at === null || at === undefined) return html`–`;
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}" title="${iso}">${momentText(iso)}</time>`;
};
