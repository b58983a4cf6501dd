// Our own way out: when endpoints that answered a while ago all fall silent together, it is us, and nobody pays for it.
import type { Clock } from '../kernel/clock.ts';
import { hour, minute, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { NoAnswer, OutboundResult } from '../kernel/outbound.ts';

export type Egress = {
  /** Takes note of how a call ended; answers whether its failure is our own. */
  isOurs(url: string, result: OutboundResult): boolean;
};

type Origin = { answeredAt: number; silentAt: number };

/** What a network that is out looks like from here; the others are answers of a kind. */
const silences: ReadonlySet<NoAnswer> = new Set<NoAnswer>([
  'dns',
  'timeout',
  'connection',
  'reset',
]);
/** So many unrelated hosts do not die in one minute, and hardly anybody else answers. */
const fewest = 5;
const most = 0.8;
const withinMs = minute;
/** Only who answered this lately says something by falling silent. */
const knownMs = hour;
const judgedEveryMs = second;
const rememberedMost = 20_000;

export const createEgress = ({ clock, log }: { clock: Clock; log: Log }): Egress => {
  const origins = new Map<string, Origin>();
  /** The same by URL: reading one for each call would cost more than all the rest. */
  const byUrl = new Map<string, Origin>();
  let judgedAt = Number.NEGATIVE_INFINITY;
  let out = false;

  const originOf = (url: string): Origin => {
    const known = byUrl.get(url);
    if (known) return known;
    if (byUrl.size >= rememberedMost) {
      byUrl.clear();
      origins.clear();
    }
    const name = URL.canParse(url) ? new URL(url).origin : url;
    const origin = origins.get(name) ?? { answeredAt: 0, silentAt: 0 };
    origins.set(name, origin);
    byUrl.set(url, origin);
    return origin;
  };

  const isOut = (now: number): boolean => {
    let answering = 0;
    let silent = 0;
    for (const { answeredAt, silentAt } of origins.values()) {
      const fellSilent = silentAt > answeredAt && now - answeredAt <= knownMs;
      if (fellSilent && now - silentAt <= withinMs) silent += 1;
      else if (silentAt <= answeredAt && now - answeredAt <= withinMs) answering += 1;
    }
    return silent >= fewest && silent >= most * (silent + answering);
  };

  const judge = (now: number): void => {
    // Until it is out, each failure may be the one that shows it; then it is looked at now and then.
    if (out && now - judgedAt < judgedEveryMs) return;
    judgedAt = now;
    const before = out;
    out = isOut(now);
    if (out && !before) log.error({}, 'webhooks reach nobody: our own network seems to be out');
    if (before && !out) log.info({}, 'webhooks reach their endpoints again');
  };

  return {
    isOurs: (url, result) => {
      const origin = originOf(url);
      const now = clock.now();
      const silence = result.kind === 'none' && silences.has(result.reason);
      if (!silence) {
        if (result.kind === 'answer') origin.answeredAt = now;
        if (out) judge(now);
        return false;
      }
      origin.silentAt = Math.max(now, origin.answeredAt + 1);
      judge(now);
      return out;
    },
  };
};
