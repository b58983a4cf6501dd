// Slots of a process and windows of origins: what endpoints share, and how much of it each kind may have.
import { second } from '../kernel/clock.ts';
import type { Result, Ticket } from './health.ts';

type Kind = Ticket['kind'];

/** Attempts at once in one process: sockets, not work. Slow endpoints share a quarter, unknown ones a half. */
const slots = 1_024;
const poolMost: Record<Kind, number> = { proven: slots, new: slots / 2, slow: slots / 4 };

/** Attempts at once at one origin (host and port), whoever's; endpoints that are not proven share a part. */
const originFirst = 128;
const originMost = 512;
const originLeast = 4;
const originShare: Record<Kind, number> = { proven: 1, new: 0.75, slow: 0.25 };
/** An origin that answered somebody this lately is alive: what hangs is the path, not the host. */
const aliveMs = 5 * second;
const rememberedMost = 50_000;

type Origin = { window: number; running: number; unproven: number; answeredAt: number };

export type Pools = {
  fits(kind: Kind, origin: string): boolean;
  take(kind: Kind, origin: string): void;
  give(kind: Kind, origin: string, result: Result, now: number): void;
  /** Attempts under way at endpoints that have shown that they answer. */
  proven(): number;
};

const noteAnswer = (origin: Origin, result: Result, now: number): void => {
  if (result.answered) {
    // Any answer at all says that the host is there.
    origin.answeredAt = now;
    if (result.ok) origin.window = Math.min(origin.window + 1, originMost);
  } else if (result.counts && now - origin.answeredAt > aliveMs) {
    origin.window = Math.max(originLeast, Math.floor(origin.window / 2));
  }
};

export const createPools = (): Pools => {
  const running: Record<Kind, number> = { proven: 0, new: 0, slow: 0 };
  const origins = new Map<string, Origin>();

  const originAt = (name: string): Origin => {
    const found = origins.get(name);
    if (found) return found;
    const fresh = { window: originFirst, running: 0, unproven: 0, answeredAt: 0 };
    if (origins.size >= rememberedMost) {
      for (const [each, origin] of origins) if (origin.running === 0) origins.delete(each);
    }
    origins.set(name, fresh);
    return fresh;
  };

  const add = (kind: Kind, origin: Origin, by: number): void => {
    running[kind] += by;
    origin.running += by;
    if (kind !== 'proven') origin.unproven += by;
  };

  return {
    proven: () => running.proven,
    fits: (kind, name) => {
      if (running.proven + running.new + running.slow >= slots) return false;
      if (running[kind] >= poolMost[kind]) return false;
      const origin = originAt(name);
      if (origin.running >= origin.window) return false;
      return kind === 'proven' || origin.unproven < origin.window * originShare[kind];
    },
    take: (kind, name) => add(kind, originAt(name), 1),
    give: (kind, name, result, now) => {
      const origin = originAt(name);
      add(kind, origin, -1);
      noteAnswer(origin, result, now);
    },
  };
};
