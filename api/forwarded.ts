// X-Forwarded-For while TRUSTED_PROXIES is not set: a proxy stands in front that the settings do not know of.
import { type Clock, hour } from '../lib/kernel/clock.ts';
import type { Log } from '../lib/kernel/log.ts';

export type ForwardedDeps = {
  config: { trustedProxies?: number | undefined };
  activity: { forwardedIgnored: boolean };
  log: Log;
  clock: Clock;
};

/** Notes such a request for the heartbeat, so for the doctor and the console, and says so in the log once an hour. */
export const watchForwarded = (deps: ForwardedDeps): ((header: unknown) => void) => {
  const { config, activity, log, clock } = deps;
  let saidAt = Number.NEGATIVE_INFINITY;
  return (header) => {
    if (header === undefined || config.trustedProxies !== undefined) return;
    activity.forwardedIgnored = true;
    if (clock.now() - saidAt < hour) return;
    saidAt = clock.now();
    log.warn(
      { setting: 'TRUSTED_PROXIES' },
      'requests come with X-Forwarded-For, but TRUSTED_PROXIES is not set: all callers count as one address; set it to the number of proxies, 0 when none adds to the header',
    );
  };
};
