// Every limit of the service as one table: the rows of the contract (spec section 8), then those it leaves to us.
import { day, hour, minute, second } from '../kernel/clock.ts';

export type Operation =
  | 'send'
  | 'deliver'
  | 'verify'
  | 'playground'
  | 'playground_verify'
  | 'playground_live'
  | 'telegram_link'
  | 'unauthenticated'
  | 'status'
  | 'read'
  | 'export'
  | 'key_change'
  | 'webhook_change'
  | 'profile_change'
  | 'totp_change'
  | 'totp_verify'
  | 'connect'
  | 'security_change'
  | 'session_open'
  | 'session_refresh'
  | 'register'
  | 'forgot'
  | 'reset';

/** Customer-safe category of a refusal (`error.reason`). */
export type Reason =
  | 'burst'
  | 'sustained'
  | 'hourly'
  | 'cooldown'
  | 'recipient_protection'
  | 'fraud_protection'
  | 'capacity';

/** Customer-safe limiting dimension (`error.dimension`). */
export type Dimension =
  | 'recipient'
  | 'recipient_global'
  | 'recipient_prefix'
  | 'recipient_country'
  | 'credential'
  | 'account'
  | 'source_ip'
  | 'login'
  | 'playground';

/** What a row counts by: one Cluster slot per value. */
export type Group = 'accountPhone' | 'phone' | 'source' | 'account';

export type AllowanceName = 'burst' | 'sustained' | 'hourly';

export type LimitRow = {
  name: string;
  /** The scope in the words of the contract, or ours. */
  scope: string;
  /** Requests per window; where `tiered` is set, those of the standard tier. */
  limit: number;
  windowMs: number;
  reason: Reason;
  dimension: Dimension;
  operations: readonly Operation[];
  group: Group;
  /** Short name of the Redis key; rows with the same one share a log. */
  key: string;
  tiered?: AllowanceName;
};

type Traits = Omit<LimitRow, 'name' | 'limit' | 'windowMs'>;

const row = <const Name extends string>(
  name: Name,
  limit: number,
  windowMs: number,
  traits: Traits,
): LimitRow & { name: Name } => ({ name, limit, windowMs, ...traits });

const sends = ['send', 'deliver'] as const;

// "Same recipient phone (send)" is read as account and phone, because the row across accounts is the wider one.
const ofAccountAndPhone: Traits = {
  scope: 'Same recipient phone (send)',
  reason: 'recipient_protection',
  dimension: 'recipient',
  operations: sends,
  group: 'accountPhone',
  key: 'ap',
};
const ofPlayground: Traits = {
  scope: 'Playground, same recipient',
  reason: 'recipient_protection',
  dimension: 'playground',
  operations: ['playground'],
  group: 'phone',
  key: 'g',
};
const ofPhone: Traits = {
  scope: 'Same recipient across all accounts',
  reason: 'recipient_protection',
  dimension: 'recipient_global',
  operations: [...sends, 'playground'],
  group: 'phone',
  key: 'p',
};
const sendBackstop = 'Unauthenticated source IP (send backstop)';
const ofSource: Traits = {
  scope: sendBackstop,
  reason: 'sustained',
  dimension: 'source_ip',
  operations: ['playground'],
  group: 'source',
  key: 'i',
};
const ofCredential: Traits = {
  scope: 'Same API credential (OTP send or verify)',
  reason: 'sustained',
  dimension: 'credential',
  operations: [...sends, 'verify'],
  group: 'account',
  key: 'c',
};
const allowance = (tiered: AllowanceName, scope: string): Traits => ({
  scope,
  reason: tiered,
  dimension: 'account',
  operations: sends,
  group: 'account',
  key: tiered.charAt(0),
  tiered,
});

/**
 * Exact sliding windows, all or nothing, closed when Redis is down (admission.ts). The order is the script's: rows of
 * one key side by side with the longest window last, the account's allowances at the end.
 */
export const admissionTable: readonly LimitRow[] = [
  row('resend', 1, 30 * second, {
    ...ofAccountAndPhone,
    scope: 'Same account and recipient (resend)',
    reason: 'cooldown',
  }),
  row('send', 3, 10 * minute, ofAccountAndPhone),
  row('playground_1m', 1, minute, ofPlayground),
  row('playground_10m', 3, 10 * minute, ofPlayground),
  row('playground_24h', 5, day, ofPlayground),
  row('recipient_10m', 6, 10 * minute, ofPhone),
  row('recipient_24h', 20, day, ofPhone),
  // The contract says 10 to 40; 20 is inside.
  row('source_ip', 20, hour, ofSource),
  row('credential', 300, minute, ofCredential),
  row('burst', 100, 10 * second, allowance('burst', 'Same account (OTP burst, standard)')),
  row('sustained', 300, minute, allowance('sustained', 'Same account (sustained, standard)')),
  row('hourly', 18_000, hour, allowance('hourly', 'Same account (60 times sustained)')),
];

const guarding = (operation: Operation, key: string, scope: string): Traits => ({
  scope,
  reason: 'sustained',
  dimension: 'account',
  operations: [operation],
  group: 'account',
  key,
});

const guardingSource = (operation: Operation, key: string, scope: string): Traits => ({
  ...guarding(operation, key, scope),
  dimension: 'source_ip',
  group: 'source',
});

const guardingLogin = (operation: Operation, key: string, scope: string): Traits => ({
  ...guarding(operation, key, scope),
  dimension: 'login',
});

/**
 * Rows the contract leaves open (reference 06 §2.10): windows from the first call on, each call counted, refused ones
 * too; in reserve in the process's memory when Redis is down (reads.ts).
 */
export const readTable = [
  row('telegram_link', 3, 10 * minute, {
    ...guarding('telegram_link', 'tl', 'Same account and recipient (telegram-link)'),
    reason: 'recipient_protection',
    dimension: 'recipient',
    group: 'accountPhone',
  }),
  row('telegram_link_burst', 100, 10 * second, {
    ...guarding('telegram_link', 'tb', 'Same account (telegram-link and its DELETE, burst)'),
    reason: 'burst',
  }),
  row(
    'telegram_link_account',
    300,
    minute,
    guarding('telegram_link', 'ta', 'Same account (telegram-link and its DELETE)'),
  ),
  row('status_message', 60, minute, guarding('status', 'sm', 'Same message (status look-up)')),
  row('status_account', 600, minute, guarding('status', 'sa', 'Same account (status look-up)')),
  row('read', 120, minute, guarding('read', 'r', 'Same account (reads)')),
  row('export', 6, hour, guarding('export', 'x', 'Same account (exports)')),
  row('key_change', 20, hour, guarding('key_change', 'kc', 'Same account (new and rotated keys)')),
  // By credential: whoever holds a key that leaked keeps nobody from revoking it.
  row('key_end', 20, hour, {
    ...guarding('key_change', 'ke', 'Same credential (revoked keys)'),
    dimension: 'credential',
  }),
  row('webhook_change', 20, hour, guarding('webhook_change', 'wc', 'Same account (webhooks)')),
  row('profile_change', 60, hour, guarding('profile_change', 'pc', 'Same account (profile)')),
  row(
    'totp_change',
    300,
    minute,
    guarding('totp_change', 'tc', 'Same account (TOTP enroll, disable)'),
  ),
  row('totp_verify', 300, minute, {
    ...guarding('totp_verify', 'tv', 'Same API credential (TOTP verify)'),
    dimension: 'credential',
  }),
  row('connect', 30, hour, guarding('connect', 'cw', 'Same account (connection, template)')),
  // Of its own, so that nobody keeps an owner from disconnecting by asking for something else.
  row('disconnect', 30, hour, guarding('connect', 'cd', 'Same account (disconnect)')),
  row('security_change', 60, hour, guarding('security_change', 'se', 'Same account (security)')),
  // By session: one that was stolen keeps nobody from ending it.
  row('session_end', 60, hour, {
    ...guarding('security_change', 'sx', 'Same session (ending sessions)'),
    dimension: 'credential',
  }),
  row('session_open', 600, hour, guardingLogin('session_open', 'so', 'Same account (logins)')),
  row('session_refresh', 30, minute, {
    ...guarding('session_refresh', 'sr', 'Same session (refresh)'),
    dimension: 'credential',
  }),
  // Failures alone are counted: good tokens from the same address go on working.
  row(
    'source_token',
    60,
    minute,
    guardingSource('unauthenticated', 'it', 'Source IP (unknown session tokens)'),
  ),
  // The contract's backstop for calls that name no account: its upper end, since one address may be many servers.
  row('source_send', 40, hour, guardingSource('unauthenticated', 'is', sendBackstop)),
  row(
    'playground_verify',
    60,
    hour,
    guardingSource('playground_verify', 'gv', 'Same source IP (playground verify)'),
  ),
  // Real messages that nobody pays for: without an end over all visitors they would be worth pumping.
  row('playground_live', 100, hour, {
    ...guarding('playground_live', 'gl', 'Playground with real delivery, all visitors'),
    dimension: 'playground',
  }),
  // By the first 64 bits of an IPv6 address and, wider, by its first 48; of IPv4 the narrower row holds alone.
  row('register', 5, hour, guardingSource('register', 'ri', 'Same source IP (register)')),
  row('register_network', 20, hour, guardingSource('register', 'rn', 'Same IPv6 /48 (register)')),
  row('forgot_source', 20, hour, guardingSource('forgot', 'fi', 'Source IP (password forgotten)')),
  row(
    'forgot_network',
    60,
    hour,
    guardingSource('forgot', 'fn', 'Same IPv6 /48 (password forgotten)'),
  ),
  row('forgot_email', 5, hour, guardingLogin('forgot', 'fe', 'Same e-mail (password forgotten)')),
  // Twice this, with the bot check, is less than the 20 messages a day that one phone takes.
  row(
    'forgot_day',
    8,
    day,
    guardingLogin('forgot', 'fd', 'Same e-mail, unknown sources (password forgotten)'),
  ),
  // Half of the platform account's 300 a minute and 18,000 an hour; codes beyond it are not sent.
  row(
    'forgot_strangers',
    25,
    10 * second,
    guardingLogin('forgot', 'fs', 'All unknown sources (password forgotten)'),
  ),
  row('reset_source', 20, hour, guardingSource('reset', 'rs', 'Same source IP (password reset)')),
  row('reset_network', 60, hour, guardingSource('reset', 'rw', 'Same IPv6 /48 (password reset)')),
] as const;

export type ReadRowName = (typeof readTable)[number]['name'];
