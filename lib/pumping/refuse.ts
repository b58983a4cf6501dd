// Refusing sends to what is held: the API's side of the guard, a look into memory.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { phoneFacts, reachedAs } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { refusalExtras, refusalOf } from '../limits/answers.ts';
import type { Mode } from '../messages/rules.ts';
import type { HeldPrefixes } from './held.ts';
import { type Allowed, bounds, type GuardMode, isAllowed, prefixOf, windowMs } from './rules.ts';
import { countryKey, type HeldPrefix } from './store.ts';

export type GuardDeps = {
  held: HeldPrefixes;
  recipients: RecipientKeys;
  /** Operators may change it at any time. */
  mode(): GuardMode;
  allowed: Allowed;
  clock: Clock;
  log: Log;
  /** Hears what became of a send to a held prefix. */
  onDecision?: (decision: 'refused' | 'would_refuse') => void;
};

/**
 * A prefix that an account may not send to; masked, and null for a whole country. The counts are the account's own; what
 * is known of other accounts is not among them. Times are ms.
 */
export type Blocked = Pick<
  HeldPrefix,
  'prefix' | 'country' | 'reason' | 'early' | 'since' | 'until' | 'settled' | 'verified'
>;

export type PumpingGuard = {
  /**
   * Lets a send or deliver pass, or throws RATE_LIMIT_EXCEEDED with the reason fraud_protection. Takes nothing and
   * asks nobody; an account without held prefixes costs one look into a Map.
   */
  check(caller: { accountId: string; mode: Mode }, phone: string): void;
  /** The prefixes that are refused to an account now. */
  blocked(accountId: string): Blocked[];
  start(): Promise<void>;
  stop(): void;
};

/** What a refusal says of the guard: it judges this many settled messages of this window. */
const rowOf = ({ prefix }: HeldPrefix) =>
  ({
    name: 'pumping',
    reason: 'fraud_protection',
    dimension: prefix === null ? 'recipient_country' : 'recipient_prefix',
    limit: (prefix === null ? bounds.country : bounds.prefix).minimum,
    windowMs,
  }) as const;

/** The guard of one API process. In shadow mode it only says what it would have refused. */
export const createPumpingGuard = (deps: GuardDeps): PumpingGuard => {
  const { held, recipients, mode, allowed, clock, log } = deps;
  const decided = deps.onDecision ?? (() => undefined);
  return {
    check: (caller, phone) => {
      const ofAccount = held.of(caller.accountId);
      if (ofAccount === undefined || caller.mode !== 'live' || mode() === 'off') return;
      const prefixKey = recipients.ofPrefix(caller.accountId, prefixOf(reachedAs(phone)));
      const ofCountry = countryKey(phoneFacts(phone).country);
      const now = clock.now();
      const hold = [ofAccount.get(ofCountry), ofAccount.get(prefixKey)].find(
        (one) => one !== undefined && one.until > now,
      );
      if (hold === undefined) return;
      if (isAllowed(allowed, caller.accountId, phone)) return;
      if (mode() === 'enforce') {
        decided('refused');
        const refusal = refusalOf(rowOf(hold), hold.until - now, now);
        throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(refusal));
      }
      decided('would_refuse');
      const { accountId, country, prefix } = hold;
      log.info({ account_id: accountId, country, prefix }, 'send would be refused');
    },
    blocked: (accountId) => {
      if (mode() !== 'enforce' || allowed.accounts.has(accountId)) return [];
      const now = clock.now();
      return [...(held.of(accountId)?.values() ?? [])].filter(({ until }) => until > now);
    },
    start: held.start,
    stop: held.stop,
  };
};
