// Whether a sending number is fit to send: pure decisions over what it answered lately.
import { second } from '../kernel/clock.ts';

export type SenderState = 'ok' | 'throttled' | 'broken';

export type SenderHealth = {
  state: SenderState;
  /** Failures in a row that were the number's own, not a recipient's. */
  failures: number;
  /** Until then (ms) the number is left alone; one call afterwards shows whether it is back. */
  pausedUntil: number;
  since: number;
};

/** A single refusal may be a mishap; this many in a row are a state. */
const failuresToPause = 5;
const throttlePauseMs = second;
const brokenPauseMs = 5 * second;

export const healthySender = (now: number): SenderHealth => ({
  state: 'ok',
  failures: 0,
  pausedUntil: 0,
  since: now,
});

/** The health after an answer: `ok` for anything that is not the number's own fault. */
export const nextHealth = (
  health: SenderHealth,
  answer: SenderState,
  now: number,
): SenderHealth => {
  if (answer === 'ok')
    return health.state === 'ok' && health.failures === 0 ? health : healthySender(now);
  const failures = health.failures + 1;
  const paused = failures >= failuresToPause;
  const pauseMs = answer === 'broken' ? brokenPauseMs : throttlePauseMs;
  return {
    state: paused ? answer : health.state,
    failures,
    pausedUntil: paused ? now + pauseMs : 0,
    since: paused && health.state !== answer ? now : health.since,
  };
};

export const isPaused = (health: SenderHealth, now: number): boolean => health.pausedUntil > now;
