// Who may send now: windows per endpoint and per origin, and slots in pools, so that nobody's slow endpoint is others'.
import type { Clock } from '../kernel/clock.ts';
import type { Endpoint } from './endpoint-store.ts';
import {
  type Health,
  isOpen,
  isSlow,
  newHealth,
  noteEnd,
  type Result,
  roomOf,
  type Ticket,
} from './health.ts';
import { createPools } from './pools.ts';

/** `later`: the endpoint has no room; `full`: the process has none; `closed`: it is left alone for now. */
export type Refusal = 'later' | 'full' | 'closed';

export type Gate = {
  /** A ticket for one attempt, or why there is none. `urgent`: somebody pressed a button; a breaker holds for others. */
  admit(endpoint: Endpoint, urgent: boolean): Ticket | Refusal;
  /** Hands a ticket back; false when it was handed back already. */
  end(endpoint: Endpoint, ticket: Ticket, result: Result): boolean;
  /** How many more attempts the endpoint could have now; 0 when it is left alone, or there are no slots. */
  room(endpoint: Endpoint): number;
  /** How many deliveries are worth keeping in memory for it. */
  patience(endpoint: Endpoint): number;
  /** Attempts under way at endpoints that have shown that they answer; of others nobody knows how long they take. */
  proven(): number;
  /** Leaves the endpoint alone until then, or until its address is set again. */
  pause(endpoint: Endpoint, until: number): void;
};

const patienceOf: Record<Ticket['kind'], number> = { proven: 200, new: 10, slow: 0 };
const rememberedMost = 50_000;

type Known = {
  health: Health;
  url: string;
  changedAt: number;
  origin: string;
  pausedUntil: number;
};

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

const kindOf = (health: Health): Ticket['kind'] => {
  if (isSlow(health)) return 'slow';
  return health.proven ? 'proven' : 'new';
};

const isPaused = ({ pausedUntil }: Known, endpoint: Endpoint, now: number): boolean =>
  Math.max(pausedUntil, endpoint.pausedUntil ?? 0) > now;

/** What the process has learnt of endpoints; an address that was set since is a new one. */
const createMemory = () => {
  const known = new Map<string, Known>();

  const forgetIdle = (): void => {
    for (const [accountId, { health }] of known) {
      if (known.size <= rememberedMost / 2) return;
      if (health.running.size === 0) known.delete(accountId);
    }
  };

  const learn = ({ accountId, url, changedAt, failingSince }: Endpoint): Known => {
    if (known.size >= rememberedMost) forgetIdle();
    const health = newHealth(failingSince !== null);
    const entry = { health, url, changedAt, origin: originOf(url), pausedUntil: 0 };
    known.set(accountId, entry);
    return entry;
  };

  return {
    at: (accountId: string): Known | undefined => known.get(accountId),
    of: (endpoint: Endpoint): Known => {
      const found = known.get(endpoint.accountId);
      // One that was read a moment too early must not undo what is known of the new address.
      const older = !found || found.changedAt < endpoint.changedAt;
      const other = found?.changedAt === endpoint.changedAt && found.url !== endpoint.url;
      return older || other ? learn(endpoint) : found;
    },
  };
};

export const createGate = (clock: Clock): Gate => {
  const memory = createMemory();
  const pools = createPools();
  const open = new Map<Ticket, string>();

  return {
    proven: pools.proven,
    admit: (endpoint, urgent) => {
      const now = clock.now();
      const entry = memory.of(endpoint);
      const { health, origin } = entry;
      if (isPaused(entry, endpoint, now)) return 'closed';
      // A test goes beside whatever hangs or is left alone there; but not two of them.
      const passes = roomOf(health, now) > 0 || (urgent && health.running.size <= health.window);
      if (!passes) return isOpen(health, now) ? 'closed' : 'later';
      const kind = kindOf(health);
      if (!pools.fits(kind, origin)) return 'full';
      const ticket: Ticket = { startedAt: now, kind, probe: health.opensAt > 0 && !urgent };
      open.set(ticket, origin);
      health.running.add(ticket);
      pools.take(kind, origin);
      return ticket;
    },

    end: (endpoint, ticket, result) => {
      const origin = open.get(ticket);
      if (origin === undefined) return false;
      const now = clock.now();
      open.delete(ticket);
      pools.give(ticket.kind, origin, result, now);
      const health = memory.at(endpoint.accountId)?.health;
      // The ticket of an address that was replaced meanwhile says nothing of the new one.
      if (health?.running.has(ticket)) noteEnd(health, ticket, result, now);
      return true;
    },

    room: (endpoint) => {
      const now = clock.now();
      const entry = memory.of(endpoint);
      if (isPaused(entry, endpoint, now) || !pools.fits(kindOf(entry.health), entry.origin)) {
        return 0;
      }
      return Math.max(0, roomOf(entry.health, now));
    },

    patience: (endpoint) => {
      const now = clock.now();
      const entry = memory.of(endpoint);
      if (isPaused(entry, endpoint, now) || isOpen(entry.health, now)) return 0;
      return patienceOf[kindOf(entry.health)];
    },

    pause: (endpoint, until) => {
      const entry = memory.of(endpoint);
      // An address that was set meanwhile has asked for nothing.
      if (entry.changedAt !== endpoint.changedAt) return;
      entry.pausedUntil = Math.max(entry.pausedUntil, until);
    },
  };
};
