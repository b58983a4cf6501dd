// Breakers of endpoints: one that fails again and again is left alone for a while, so that it costs nobody's time.
import type { Clock } from '../kernel/clock.ts';
import { minute, second } from '../kernel/clock.ts';

/** Failures in a row that open it; it stays open for half a minute first, doubling to ten minutes. */
const failuresToOpen = 5;
const firstPauseMs = 30 * second;
const longestPauseMs = 10 * minute;
const rememberedMax = 50_000;

type Breaker = { failures: number; pauses: number; until: number };

export type Breakers = {
  note(accountId: string, delivered: boolean): void;
  /** Accounts that are left alone now. */
  open(): string[];
};

/** In the process's memory: forgotten at a restart, when each endpoint gets its chance anyway. */
export const createBreakers = (clock: Clock): Breakers => {
  const known = new Map<string, Breaker>();
  return {
    note: (accountId, delivered) => {
      if (delivered) {
        known.delete(accountId);
        return;
      }
      if (known.size >= rememberedMax) known.clear();
      const before = known.get(accountId) ?? { failures: 0, pauses: 0, until: 0 };
      const failures = before.failures + 1;
      if (failures < failuresToOpen) {
        known.set(accountId, { ...before, failures });
        return;
      }
      const pause = Math.min(firstPauseMs * 2 ** before.pauses, longestPauseMs);
      // The next failure opens it again at once: behind a pause comes one probe.
      const next = { failures: failuresToOpen - 1, pauses: before.pauses + 1 };
      known.set(accountId, { ...next, until: clock.now() + pause });
    },
    open: () => {
      const now = clock.now();
      return [...known].filter(([, { until }]) => until > now).map(([accountId]) => accountId);
    },
  };
};
