// Keys in their owner's hands: the list, new ones, rotation with a grace, and the end of one.
import { type Act, newEntry, type SecurityEntry, securityEvent } from '../accounts/acts.ts';
import type { EventWire } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Mode } from '../messages/rules.ts';
import { type IssuedKey, newKey } from './issue.ts';
import type { Revocations } from './revocations.ts';
import { descendantsOf, isUsable, type KeyRecord } from './rules.ts';
import type { KeyStore, WithinKeys } from './store.ts';

/** Keys of one mode that an account may hold (issue of the contract's silence: reference 06 section 5). */
export const keysMax = 20;
/** How long a rotated key goes on working beside its successor. */
export const rotationGraceMs = 24 * hour;
/** How long ended keys stay in the list. */
const endedShownMs = 30 * day;

export type KeyDeps = {
  keys: KeyStore;
  revocations: Pick<Revocations, 'announce'>;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
};

export type KeyStatus = 'active' | 'expiring' | 'expired' | 'revoked';

/** What a key is at `now` (ms). */
export const keyStatus = (
  { revokedAt, expiresAt }: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>,
  now: number,
): KeyStatus => {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'active';
  return expiresAt > now ? 'expiring' : 'expired';
};

const full = (mode: Mode) =>
  invalid({
    field: 'mode',
    issue: `there are ${keysMax} ${mode} keys already; revoke one of them first`,
  });

/** Newest first; of those that ended only the last 30 days'. */
export const listKeys = (
  { keys, clock }: Pick<KeyDeps, 'keys' | 'clock'>,
  accountId: string,
): Promise<KeyRecord[]> => keys.list(accountId, clock.now() - endedShownMs);

/** The key that acts; null: it is none. */
const actingKey = (act: Act): string | null => (act.by === 'key' ? act.credentialId : null);

const factsOf = ({ id, name, mode }: KeyRecord) => ({ key_id: id, name, mode });

/** Writes that a key was made; answers the event. */
const recordMade = async (
  within: WithinKeys,
  { record, act, at, from }: { record: KeyRecord; act: Act; at: number; from: string | null },
): Promise<EventWire> => {
  const entry = newEntry(record.accountId, act, { action: 'key_created', subjectId: record.id });
  const data = {
    ...factsOf(record),
    made_by_key_id: record.madeByKey,
    rotated_from_key_id: from,
  };
  const event = securityEvent('security.key_created', entry, { at, data });
  await within.record([entry], [event]);
  return event;
};

/**
 * Makes a key; it knows the key that made it.
 * @throws VALIDATION_ERROR when the account holds as many of this mode as it may; KEY_MANAGEMENT_DISABLED,
 * INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const createKey = async (
  deps: KeyDeps,
  request: { accountId: string; name: string; mode: Mode; act: Act },
): Promise<IssuedKey> => {
  const { accountId, name, mode, act } = request;
  const issued = newKey({ accountId, name, mode, madeByKey: actingKey(act) });
  const at = deps.clock.now();
  const event = await deps.keys.change(accountId, {
    act,
    now: at,
    work: async (within) => {
      if ((await within.countLasting(mode)) >= keysMax) throw full(mode);
      await within.insert(issued.record, issued.hash);
      return recordMade(within, { record: issued.record, act, at, from: null });
    },
  });
  await tellNews(deps, [event]);
  return issued;
};

export type Rotated = { issued: IssuedKey; before: { id: string; expiresAt: number } };

/**
 * Replaces a key by one of the same name and mode; the old one works for another day. Rotating a key that is in its
 * grace gives another successor and leaves that grace as it is. A successor was made by the key that makes the call,
 * also where that is its predecessor: a leaked key does not outlive its revocation by rotating itself.
 * @throws NOT_FOUND, VALIDATION_ERROR (see createKey)
 */
export const rotateKey = async (
  deps: KeyDeps,
  { accountId, id, act }: { accountId: string; id: string | undefined; act: Act },
): Promise<Rotated> => {
  const now = deps.clock.now();
  const work = async (within: WithinKeys): Promise<Rotated & { event: EventWire }> => {
    const old = await within.findUsable(id, now);
    if (!old) throw fail('NOT_FOUND');
    const lasting = await within.countLasting(old.mode);
    if (old.expiresAt !== null && lasting >= keysMax) throw full(old.mode);
    const expiresAt = old.expiresAt ?? now + rotationGraceMs;
    const { name, mode, familyId } = old;
    const made = newKey({ accountId, name, mode, madeByKey: actingKey(act) });
    const issued = { ...made, record: { ...made.record, familyId } };
    await within.insert(issued.record, issued.hash);
    const event = await recordMade(within, { record: issued.record, act, at: now, from: old.id });
    await within.expire(old.id, expiresAt);
    return { issued, before: { id: old.id, expiresAt }, event };
  };
  const { event, ...rotated } = await deps.keys.change(accountId, { act, now, work });
  await deps.revocations.announce(accountId);
  await tellNews(deps, [event]);
  return rotated;
};

export type Revoked = {
  /** Keys that ended with it, since it made them. */
  descendants: KeyRecord[];
  /** What it and its descendants changed in the last 30 days, the newest first. */
  changes: SecurityEntry[];
};

const changesWithinMs = 30 * day;

/**
 * Which keys a revocation ends: the key, and what it made, and what that made. The key that makes the call does not end
 * with another one, nor does what it made: a successor may end its predecessor.
 */
const endedBy = (
  all: readonly KeyRecord[],
  given: { id: string; act: Act; keepDescendants: boolean; now: number },
): KeyRecord[] => {
  const { id, act, keepDescendants, now } = given;
  const acting = actingKey(act);
  const spared = new Set(acting === null || acting === id ? [] : descendantsOf(all, acting));
  if (acting !== null && acting !== id) spared.add(acting);
  const made = keepDescendants ? new Set<string>() : descendantsOf(all, id);
  return all.filter(
    (key) => isUsable(key, now) && (key.id === id || (made.has(key.id) && !spared.has(key.id))),
  );
};

/** Writes that keys ended; answers the events. */
const recordEnded = async (
  within: WithinKeys,
  { ended, id, act, at }: { ended: readonly KeyRecord[]; id: string; act: Act; at: number },
): Promise<EventWire[]> => {
  const told = ended.map((key) => {
    const entry = newEntry(key.accountId, act, { action: 'key_revoked', subjectId: key.id });
    const data = { ...factsOf(key), revoked_with_key_id: key.id === id ? null : id };
    return { entry, event: securityEvent('security.key_revoked', entry, { at, data }) };
  });
  const events = told.map(({ event }) => event);
  await within.record(
    told.map(({ entry }) => entry),
    events,
  );
  return events;
};

/**
 * Ends a key, and the keys it made, on every process within a second. One that ended before is found as long as a key
 * that it made still works; otherwise it is not found, but everybody is told again: whoever ended it may not have come
 * to it.
 * @throws NOT_FOUND, KEY_MANAGEMENT_DISABLED, INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const revokeKey = async (
  deps: KeyDeps,
  request: { accountId: string; id: string; act: Act; keepDescendants: boolean },
): Promise<Revoked> => {
  const { accountId, id, act, keepDescendants } = request;
  const now = deps.clock.now();
  const work = async (within: WithinKeys) => {
    const all = await within.all();
    if (!all.some((key) => key.id === id)) return undefined;
    const ended = endedBy(all, { id, act, keepDescendants, now });
    if (ended.length === 0) return { ended, changes: [], events: [] };
    const changes = await within.changesOf([id, ...descendantsOf(all, id)], now - changesWithinMs);
    const events = await recordEnded(within, { ended, id, act, at: now });
    await within.end(
      ended.map((key) => key.id),
      now,
    );
    return { ended, changes, events };
  };
  const done = await deps.keys.change(accountId, { act, now, work });
  if (done) await deps.revocations.announce(accountId);
  if (!done || done.ended.length === 0) throw fail('NOT_FOUND');
  await tellNews(deps, done.events);
  return { descendants: done.ended.filter((key) => key.id !== id), changes: done.changes };
};
