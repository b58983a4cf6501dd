// What an account is told about its money.
import type { EventWire } from '../jobs.ts';
import { derivedId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';
import { type AccountEventType, accountEvent } from '../messages/events.ts';
import { type Change, lowBalanceMicros } from './rules.ts';

/** An event about an account's money; `name` tells the happening from others of its type. */
export const newsAbout = (
  accountId: string,
  { name, at }: { name: string | number; at: number },
  type: AccountEventType,
  data: Record<string, unknown>,
): EventWire => {
  const subject = `${accountId} ${name}`;
  const requestId = derivedId(subject, type);
  return accountEvent(type, { accountId, mode: 'live', at, requestId, subject, data });
};

/** What a change of balance is worth telling; each crossing once. */
export const newsOf = (
  accountId: string,
  { before, after, trialEnds }: Change,
  at: number,
): EventWire[] => {
  const about = { name: after.seq, at };
  const fell = before.micros >= lowBalanceMicros && after.micros < lowBalanceMicros;
  const { trialGranted: granted, trialUsed: used } = after;
  const ended = before.trialUsed < granted && used >= granted;
  const low = { balance: toUsd(after.micros) };
  const switched = { from: 'trial', to: 'pay_per_success', reason: 'trial_used_up' };
  return [
    ...(fell ? [newsAbout(accountId, about, 'billing.low_balance', low)] : []),
    ...(ended ? [newsAbout(accountId, about, 'billing.trial_exhausted', { granted, used })] : []),
    ...(trialEnds ? [newsAbout(accountId, about, 'billing.plan_changed', switched)] : []),
  ];
};
