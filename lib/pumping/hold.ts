// Holding who pumps a block of numbers or a country: an account by itself, or accounts that do so together.
import { type Clock, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { reachedAs } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { judge, type Share, shareOfCodes, shareOfDelivers } from './judge.ts';
import {
  type Allowed,
  type Bounds,
  bounds,
  type GroundedHold,
  type Grounds,
  type GuardMode,
  type Hold,
  isEarly,
  maskPrefix,
  nextHold,
  prefixOf,
} from './rules.ts';
import {
  countryKey,
  type GroupShare,
  type Keyed,
  type PumpingStore,
  type Recorded,
  type ScopeTally,
} from './store.ts';

export type HolderDeps = {
  store: PumpingStore;
  recipients: RecipientKeys;
  mode(): GuardMode;
  allowed: Allowed;
  clock: Clock;
  log: Log;
};

/** A block of numbers or a country, for whichever account. */
type Place = {
  country: string;
  /** Null for a country. */
  prefix: string | null;
  /** Where shares of all accounts are kept. */
  groupKey: string;
  bounds: Bounds;
};

const hashShown = 12;
/** A share of a country that is not enough by itself is compared with the others' this often. */
const countryEveryMs = 5 * second;
const rememberedMost = 10_000;

const scopeKeyOf = (recipients: RecipientKeys, accountId: string, place: Place): string =>
  place.prefix === null ? countryKey(place.country) : recipients.ofPrefix(accountId, place.prefix);

const logHold = (deps: HolderDeps, accountId: string, place: Place, hold: GroundedHold): void => {
  const { country, prefix, groupKey } = place;
  const { reason, early, accounts, together, settled, verified, level } = hold;
  const what = prefix === null ? 'country' : 'prefix';
  deps.log.warn(
    {
      account_id: accountId,
      country,
      prefix: prefix === null ? null : maskPrefix(prefix),
      prefix_hash: groupKey.slice(0, hashShown),
      reason,
      early,
      settled,
      verified,
      level,
      accounts,
      settled_together: together.settled,
      verified_together: together.verified,
      hold_seconds: (hold.until - hold.since) / second,
    },
    deps.mode() === 'enforce' ? `${what} held` : `${what} would be held`,
  );
};

/** A young open code counts half; in a country it does not count: too many accounts are young there at any time. */
const codesOf = ({ codes }: ScopeTally, place: Place) => {
  const { settled, verified, open, young } = codes;
  return { settled, verified, open: open + (place.prefix === null ? 0 : young / 2) };
};

const publish = (
  deps: HolderDeps,
  accountId: string,
  place: Place,
  hold: GroundedHold,
): Promise<void> => {
  const { country } = place;
  const prefixKey = scopeKeyOf(deps.recipients, accountId, place);
  const prefix = place.prefix === null ? null : maskPrefix(place.prefix);
  return deps.store.publish({ accountId, prefixKey, prefix, country, ...hold }, deps.clock.now());
};

const isOn = (hold: Hold | undefined, now: number): hold is Hold =>
  hold !== undefined && hold.until > now;

/** Codes and delivers of one account are two shares of a group. */
const fieldOf = ({ accountId, fault }: Share): string =>
  fault === 'unverified' ? accountId : `${accountId}:d`;

/** Begins a hold of an account; one on open codes is followed by one on settled ones. */
const begin = async (
  deps: HolderDeps,
  place: Place,
  share: Share,
  { grounds, previous }: { grounds: Grounds; previous: GroundedHold | undefined },
): Promise<void> => {
  const now = deps.clock.now();
  if (isOn(previous, now) && (grounds.early || !isEarly(previous))) return;
  const { accountId, settled, verified, open } = share;
  const tally = { settled: Math.floor(settled + (grounds.early ? open : 0)), verified };
  const next = nextHold(previous, tally, now, grounds.early);
  const held: GroundedHold = { ...next, ...grounds };
  const prefixKey = scopeKeyOf(deps.recipients, accountId, place);
  if (!(await deps.store.hold({ accountId, prefixKey }, previous, held))) return;
  logHold(deps, accountId, place, held);
  await publish(deps, accountId, place, held);
  if (grounds.early) return;
  // What it rests on stays in the group, so that others are judged beside it until the window is over.
  await deps.store.changeGroup(
    place.groupKey,
    [
      { field: `${accountId}:${now}`, share: { ...share, spent: true } },
      { field: fieldOf(share), share: undefined },
    ],
    now,
  );
};

/** An account's shares in a place as they are now, with its last hold there. */
const sharesOf = (place: Place, accountId: string, recorded: Recorded, tally: ScopeTally) => {
  const { good, sources, delivers } = recorded;
  const whose = { accountId, good, sources };
  const codes = shareOfCodes(whose, codesOf(tally, place));
  const sent = shareOfDelivers(whose, { ...tally.delivers, everywhere: delivers });
  return [codes, sent].filter(({ fault }) => fault !== null);
};

/** A share as it is now, and the last hold of its account in that place. */
type Current = { share: Share; previous: GroundedHold | undefined };

const sameCounts = (one: Share, other: Share): boolean =>
  one.settled === other.settled && one.verified === other.verified && one.open === other.open;

/** The share of another account as it is now; undefined when nothing is wrong with it any more. */
const currentOf = async (
  deps: HolderDeps,
  place: Place,
  listed: GroupShare,
): Promise<Current | undefined> => {
  const { accountId } = listed;
  const prefixKey = scopeKeyOf(deps.recipients, accountId, place);
  const recorded = await deps.store.look({ accountId, prefixKey }, deps.clock.now());
  const tally = recorded.scopes.get(prefixKey);
  const shares = tally && !recorded.good ? sharesOf(place, accountId, recorded, tally) : [];
  const share = shares.find((one) => fieldOf(one) === fieldOf(listed));
  return share && { share, previous: tally?.hold };
};

/**
 * Looks up what has become of shares since they were listed: codes that were open then may have been entered. The group
 * lists the new state, so that the same change is not looked up twice.
 */
const refresh = async (
  deps: HolderDeps,
  place: Place,
  listed: readonly GroupShare[],
): Promise<Current[]> => {
  const found = await Promise.all(
    listed.map(async (known) => ({ known, current: await currentOf(deps, place, known) })),
  );
  const changes = found
    .filter(({ known, current }) => !current || !sameCounts(known, current.share))
    .map(({ known, current }) => ({
      field: fieldOf(known),
      share: current && { ...current.share, spent: false },
    }));
  if (changes.length > 0) {
    await deps.store.changeGroup(place.groupKey, changes, deps.clock.now());
  }
  return found.map(({ current }) => current).filter((current) => current !== undefined);
};

/** Judges an account among the others of a place, and every other one there: one more share may hold them all. */
const judgeTogether = async (
  deps: HolderDeps,
  place: Place,
  mine: Share,
  previous: GroundedHold | undefined,
): Promise<void> => {
  const field = fieldOf(mine);
  const change = { field, share: { ...mine, spent: false } };
  const listed = await deps.store.changeGroup(place.groupKey, [change], deps.clock.now());
  const others = listed.filter((share) => !share.spent && fieldOf(share) !== field);
  if (![mine, ...others].some((share) => judge(share, listed, place.bounds))) return;
  const all = [{ share: mine, previous }, ...(await refresh(deps, place, others))];
  const shares = [...listed.filter(({ spent }) => spent), ...all.map(({ share }) => share)];
  await Promise.all(
    all.map(async ({ share, previous: last }) => {
      if (deps.allowed.accounts.has(share.accountId)) return;
      const grounds = judge(share, shares, place.bounds);
      if (grounds) await begin(deps, place, share, { grounds, previous: last });
    }),
  );
};

const judgePlace = async (
  deps: HolderDeps,
  place: Place,
  tally: ScopeTally,
  { accountId, recorded }: { accountId: string; recorded: Recorded },
): Promise<void> => {
  const { hold } = tally;
  if (isOn(hold, deps.clock.now())) {
    // The run that began it may not have lived to show it.
    await publish(deps, accountId, place, hold);
    if (!isEarly(hold)) return;
  }
  for (const share of sharesOf(place, accountId, recorded, tally)) {
    if (share.good) {
      const grounds = judge(share, [share], place.bounds);
      if (grounds) await begin(deps, place, share, { grounds, previous: hold });
    } else {
      await judgeTogether(deps, place, share, hold);
    }
  }
};

export type Holder = {
  /** Judges one account by what was recorded of these messages, and holds who is to be held. */
  judge(accountId: string, messages: readonly Keyed[], recorded: Recorded): Promise<void>;
};

/** The holder of one worker process. Throws RedisUnavailable. */
export const createHolder = (deps: HolderDeps): Holder => {
  const { recipients, clock } = deps;
  const comparedAt = new Map<string, number>();

  /** A busy country is looked at now and then; what is enough by itself is looked at whenever it changes. */
  const isDue = (accountId: string, place: Place, { codes }: ScopeTally): boolean => {
    if (place.prefix !== null) return true;
    const missing = codes.settled - codes.verified + codes.open;
    if (missing < place.bounds.share) return false;
    const key = `${accountId}:${place.country}`;
    const now = clock.now();
    if (missing < place.bounds.minimum && now < (comparedAt.get(key) ?? 0) + countryEveryMs) {
      return false;
    }
    if (comparedAt.size >= rememberedMost) comparedAt.clear();
    comparedAt.set(key, now);
    return true;
  };

  const placesOf = (messages: readonly Keyed[]): Map<string, Place> => {
    const places = new Map<string, Place>();
    for (const { prefixKey, phone, country } of messages) {
      const prefix = prefixOf(reachedAs(phone));
      const groupKey = recipients.ofPrefix('', prefix);
      places.set(prefixKey, { country, prefix, groupKey, bounds: bounds.prefix });
      const key = countryKey(country);
      places.set(key, { country, prefix: null, groupKey: key, bounds: bounds.country });
    }
    return places;
  };

  return {
    judge: async (accountId, messages, recorded) => {
      const about = { accountId, recorded };
      await Promise.all(
        [...placesOf(messages)].map(async ([key, place]) => {
          const tally = recorded.scopes.get(key);
          if (tally && isDue(accountId, place, tally)) await judgePlace(deps, place, tally, about);
        }),
      );
    },
  };
};
