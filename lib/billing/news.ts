// What an account is told about its money: written with the change it tells of, so that no crash can lose it.
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import { derivedId, newId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';
import type { Announcer } from '../messages/announce.ts';
import { type AccountEventType, accountEvent } from '../messages/events.ts';
import type { NewsStore } from './news-store.ts';
import { type Balance, lowBalanceMicros } from './rules.ts';

export type News = {
  id: string;
  accountId: string;
  type: AccountEventType;
  /** Names what happened: the same happening is the same event. */
  subject: string;
  data: Record<string, unknown>;
  at: number;
};

export const newsAbout = (
  accountId: string,
  { name, at }: { name: string | number; at: number },
  type: AccountEventType,
  data: Record<string, unknown>,
): News => ({ ...{ id: newId(), accountId, type, data, at }, subject: `${accountId} ${name}` });

/** What a change of balance is worth telling; each crossing once. */
export const newsOf = (
  accountId: string,
  { before, after }: { before: Balance; after: Balance },
  at: number,
): News[] => {
  const about = { name: after.seq, at };
  const fell = before.micros >= lowBalanceMicros && after.micros < lowBalanceMicros;
  const { trialGranted: granted, trialUsed: used } = after;
  const ended = before.trialUsed < granted && used >= granted;
  const low = { balance: toUsd(after.micros) };
  return [
    ...(fell ? [newsAbout(accountId, about, 'billing.low_balance', low)] : []),
    ...(ended ? [newsAbout(accountId, about, 'billing.trial_exhausted', { granted, used })] : []),
  ];
};

export type TellerDeps = { news: NewsStore; announcer: Announcer; clock: Clock };

/** Announces news and strikes it off; what could not be announced stays for the next round. */
export const tellNews = async (
  { news, announcer }: Pick<TellerDeps, 'news' | 'announcer'>,
  list: readonly News[],
): Promise<void> => {
  for (const { id, accountId, type, subject, data, at } of list) {
    const requestId = derivedId(subject, type);
    const about = { accountId, mode: 'live' as const, at, requestId, subject };
    await announcer.announce(accountEvent(type, { ...about, data }));
    await news.strike(id);
  }
};

/** Younger news is being told by whoever wrote it. */
const leftAfterMs = 10 * second;
const batch = 100;

/** Tells what a process that died or a broker that was away left untold; answers how many. */
export const tellLeftNews = async (deps: TellerDeps): Promise<number> => {
  const left = await deps.news.leftBefore(deps.clock.now() - leftAfterMs, batch);
  await tellNews(deps, left);
  return left.length;
};
