// Rate limits of the WhatsApp simulator, off until switched on: per number and per pair (reference 02 section 7).
import type { Clock } from './clock.ts';
import { GraphFailure } from './whatsapp-errors.ts';

export type LimitSettings = {
  /** Messages per second and number (Meta: 80, 1,000 after an upgrade); null is no limit. */
  throughputPerSecond: number | null;
  /** Whether one number may write to one recipient only once per 6 s, after a burst of 45. */
  pair: boolean;
};

const pairEveryMs = 6000;
const pairBurst = 45;
const maxPairs = 100_000;

export type WhatsAppLimits = ReturnType<typeof createWhatsAppLimits>;

/** Creates the limits, switched off. */
export const createWhatsAppLimits = (clock: Clock) => {
  let settings: LimitSettings = { throughputPerSecond: null, pair: false };
  const windows = new Map<string, { second: number; count: number }>();
  // Per pair: the moment at which the last message allowed so far is paid for.
  const paidAtMs = new Map<string, number>();

  const checkThroughput = (phoneNumberId: string, perSecond: number) => {
    const second = Math.floor(clock.now() / 1000);
    const known = windows.get(phoneNumberId);
    const window = known?.second === second ? known : { second, count: 0 };
    if (window.count >= perSecond) {
      throw new GraphFailure(130429, { details: 'Throughput of the number reached.' });
    }
    window.count += 1;
    windows.set(phoneNumberId, window);
  };

  const checkPair = (pair: string) => {
    const now = clock.now();
    const paid = Math.max(paidAtMs.get(pair) ?? now, now) + pairEveryMs;
    if (paid - now > pairBurst * pairEveryMs) {
      throw new GraphFailure(131056, {
        details: 'Too many messages from this number to this one.',
      });
    }
    if (paidAtMs.size >= maxPairs) paidAtMs.clear();
    paidAtMs.set(pair, paid);
  };

  return {
    set: (change: Partial<LimitSettings>): LimitSettings => {
      settings = { ...settings, ...change };
      return settings;
    },
    /** Counts one message. @throws GraphFailure 130429 or 131056 */
    check: (phoneNumberId: string, phone: string): void => {
      if (settings.throughputPerSecond !== null) {
        checkThroughput(phoneNumberId, settings.throughputPerSecond);
      }
      if (settings.pair) checkPair(`${phoneNumberId}/${phone}`);
    },
    reset: (): void => {
      settings = { throughputPerSecond: null, pair: false };
      windows.clear();
      paidAtMs.clear();
    },
  };
};
