// What time it is elsewhere: every answer of a provider says it.
import type { Http } from '../infra/http.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Finding, judgeSkew } from './rules.ts';

type Seen = { host: string; skewMs: number; uncertainMs: number };

/** Half of the second that the header leaves out. */
const halfSecondMs = 500;

/** `http`, and the clocks of those who answer it. Clocks of one machine agree with each other, right or wrong. */
export const watchClocks = (http: Http, clock: Clock) => {
  const seen: Seen[] = [];
  const send: Http['send'] = async (request) => {
    const before = clock.now();
    const answer = await http.send(request);
    const after = clock.now();
    const theirs = Date.parse(answer.date ?? '') + halfSecondMs;
    if (!Number.isNaN(theirs)) {
      const uncertainMs = (after - before) / 2 + halfSecondMs;
      const skewMs = (before + after) / 2 - theirs;
      seen.push({ host: new URL(request.url).host, skewMs, uncertainMs });
    }
    return answer;
  };
  return {
    http: { ...http, send },
    /** By the quickest answer; none when nobody said the time. */
    findings: (): Finding[] => {
      const [best] = seen.toSorted((one, other) => one.uncertainMs - other.uncertainMs);
      return best ? [judgeSkew(best.host, best.skewMs, best.uncertainMs)] : [];
    },
  };
};
