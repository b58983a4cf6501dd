// The limits as tables, from the rows that enforce them, each with a word on what it is for.
import {
  customTierBounds,
  standardTier,
  type Tier,
  tier1000,
  tier5000,
} from '../../lib/limits/rules.ts';
import { admissionTable, type LimitRow, readTable } from '../../lib/limits/table.ts';
import { blockMs, failedAttempts } from '../../lib/otp/rules.ts';
import { resetStreak } from '../../lib/recovery/guesses.ts';
import {
  failuresMax,
  firstBlockMs,
  guessesMax,
  longestBlockMs,
  perEmail,
  perEmailHuman,
  perNetwork,
  perSource,
} from '../../lib/security/throttle.ts';
import { code, table } from './page.ts';

/** Why each row is there, by its name; a test holds the names together. */
export const limitTexts: Record<string, string> = {
  resend: 'A second code within half a minute is almost always a double click.',
  send: 'Keeps one of your users from being flooded through you.',
  playground_1m: 'The playground is for trying, not for sending.',
  playground_10m: 'The same, over ten minutes.',
  playground_24h: 'The same, over a day.',
  recipient_10m: 'Keeps a phone from being flooded through many accounts at once.',
  recipient_24h: 'The same, over a day.',
  source_ip: 'Holds for calls without an account, which only the playground takes.',
  credential: 'What one key may do in a minute, sends and verifies together.',
  burst: 'Smooths peaks; grows with a reviewed tier.',
  sustained: 'The tier of the account; grows with a review.',
  hourly: 'Sixty times the sustained rate.',
  telegram_link: 'Every call issues a fresh link, so few are needed.',
  telegram_link_burst: 'As for sends: smooths peaks of links issued and forgotten.',
  telegram_link_account: 'As for sends, without the pause between two for one recipient.',
  status_message: 'Webhooks tell sooner than polling.',
  status_account: 'All look-ups of one account together.',
  read: 'Lists, analytics, billing and other reads of one account together.',
  export: 'An export reads everything there is.',
  key_change:
    'Making and rotating keys, and the first look at them. Sessions and keys count apart, so that a key that leaked keeps nobody from replacing it.',
  key_end:
    'Of its own for each credential, so that a key that leaked keeps nobody from revoking it.',
  webhook_change: 'New secrets, tests and repeats of deliveries. Sessions and keys count apart.',
  profile_change: 'Changes of profile and settings. Sessions and keys count apart.',
  totp_change: 'Enrolling and disabling.',
  totp_verify: 'What one key may verify; guesses are held back by the block below.',
  disconnect:
    'Of its own, so that other calls never keep an owner from disconnecting; sessions and keys count apart.',
  security_change: 'Changes and proofs of the second factor.',
  session_end: 'Of its own for each session, so that a stolen one keeps nobody from ending it.',
  session_open: 'Logins that succeeded.',
  session_refresh: 'New pairs of tokens for one session.',
  source_token: 'Tokens that nobody has; good ones from the same address go on working.',
  reset_source: 'Guesses at such codes from one address.',
  connect: 'Calls that WhatsApp or Stripe has to answer. Sessions and keys count apart.',
  playground_verify: 'Guessing in the playground.',
  playground_live: 'Only where the operator switched real delivery on; nobody pays for these.',
  source_send: 'Calls that name no account, right or wrong, also those that fail.',
  register: 'New accounts from one address.',
  register_network: 'New accounts from one network of IPv6 addresses.',
  forgot_source: 'Codes for forgotten passwords asked for from one address.',
  forgot_network: 'The same from one network of IPv6 addresses.',
  forgot_email:
    'Codes for one account. A source that the account knows has this allowance to itself.',
  forgot_day: 'Does not hold for sources that the account knows.',
  forgot_strangers: 'Leaves sends of the service for sources that the accounts know.',
  reset_network: 'The same from one network of IPv6 addresses.',
};

const units = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
] as const;

/** Logins and resets are counted apart (lib/security/throttle.ts, lib/recovery/guesses.ts). */
export const loginText = (): string =>
  [
    `Logins have limits of their own: ${failuresMax} failures in a row of one e-mail address from one source block it there for ${windowText(firstBlockMs)}, then twice as long each time, up to ${windowText(longestBlockMs)}. Sources that the account does not know may fail ${perEmail.limit} times a day for one e-mail address, all together; past that they need the bot check (\`turnstile_token\`, see [\`TURNSTILE_REQUIRED\`](/docs/errors/TURNSTILE_REQUIRED)) where it is configured, for ${perEmailHuman.limit} more, and wait where it is not. One source may fail ${perSource.limit} times a day for all e-mail addresses, one IPv6 network of 48 bits ${perNetwork.limit} times.`,
    `Codes for a forgotten password: ${resetStreak.failures} wrong ones in a row for one e-mail address, over all codes, block it for ${windowText(resetStreak.firstWaitMs)}, then twice as long each time, up to ${windowText(resetStreak.longestWaitMs)}. All unknown sources count together, each known one by itself.`,
    `In an open session wrong passwords and codes count for that session alone: ${guessesMax} an hour of each kind. At a login that waits for its second factor it is ${guessesMax} an hour for each source that the account knows, and for all others together. Recovery codes are counted apart from codes of the app.`,
    'A source is an IPv4 address or the first 64 bits of an IPv6 one. An account knows the 20 sources it was used from last, for 90 days: where its owner logged in, signed up or reset the password.',
  ].join('\n\n');

/** A window in words: 10 minutes, 1 hour, 24 hours. */
export const windowText = (ms: number): string => {
  if (ms === 86_400_000) return '24 hours';
  const [size, unit] = units.find(([candidate]) => ms % candidate === 0) ?? [1, 'millisecond'];
  const count = ms / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
};

const number = (value: number): string => value.toLocaleString('en-US');

const rowsOf = (rows: readonly LimitRow[]): string =>
  table(
    ['What is counted', 'At most', '`dimension`, `reason`', 'Why'],
    rows.map((row) => [
      row.scope,
      `${number(row.limit)} in ${windowText(row.windowMs)}`,
      `${code(row.dimension)}, ${code(row.reason)}`,
      limitTexts[row.name] ?? '',
    ]),
  );

export const admissionRows = (): string => rowsOf(admissionTable);

export const readRows = (): string => rowsOf(readTable);

const tierRow = ({ name, burst, sustained, hourly }: Tier): string[] => [
  code(name),
  ...[number(sustained), number(burst), number(hourly)],
];

export const tierRows = (): string =>
  table(
    ['Tier', 'Per minute', 'Per 10 seconds', 'Per hour'],
    [
      ...[standardTier, tier1000, tier5000].map(tierRow),
      [
        '`custom`',
        `${customTierBounds.min} to ${number(customTierBounds.max)}`,
        'a third',
        '60 times',
      ],
    ],
  );

export const lockoutText = (): string =>
  `${failedAttempts} wrong codes for one phone within ${windowText(blockMs)} block every verify of that account and phone for ${windowText(blockMs)}, the right code included.`;
