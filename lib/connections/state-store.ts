// The state of own numbers in MySQL: broken or sound, and what the number is like.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { second } from '../kernel/clock.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { AccountEffect, BrokenReason } from './rules.ts';

type Row = Record<string, unknown>;

/** Runs an update of a connection that every process hears of; answers the account it has changed, if any. */
const changed = (
  db: Database,
  id: string,
  update: (connection: ReturnType<Database>) => PromiseLike<number>,
): Promise<string | undefined> =>
  withLockRetry(() =>
    db.transaction(async (trx) => {
      const own = { id: idBytes(id) };
      if ((await update(trx('whatsapp_connections').where(own))) === 0) return undefined;
      const row = await trx<Row>('whatsapp_connections').where(own).first('account_id');
      const accountId = idText(row?.account_id as Buffer);
      await advanceEpoch(trx, accountId);
      return accountId;
    }),
  );

const breaking = (reason: BrokenReason, now: number) => ({
  ...{ status: 'broken', broken_at: now, broken_reason: reason },
});
const healing = { status: 'connected', broken_at: null, broken_reason: null };

/** Meta's news are timed in whole seconds. */
const newsGrainMs = second;

export const createStateStore = (db: Database) => ({
  /** Answers the account; undefined when it was broken before, or is not there any more. */
  markBroken: (id: string, reason: BrokenReason, now: number): Promise<string | undefined> =>
    changed(db, id, (connection) =>
      connection.where({ status: 'connected' }).update(breaking(reason, now)),
    ),

  /** Takes a connection for sound again that is broken for one of the reasons; answers its account if it was. */
  heal: (id: string, reasons: readonly BrokenReason[]): Promise<string | undefined> =>
    changed(db, id, (connection) =>
      connection.where({ status: 'broken' }).whereIn('broken_reason', reasons).update(healing),
    ),

  /**
   * Takes what the provider says of the business account, unless it is older than the connection or than what it
   * said before; answers the account whose connection changed state by it.
   */
  takeAccountNews: (
    id: string,
    effect: AccountEffect,
    { at, now }: { at: number; now: number },
  ): Promise<string | undefined> =>
    changed(db, id, async (connection) => {
      const fresh = connection
        .clone()
        .where('connected_at', '<', at + newsGrainMs)
        .andWhere((one) => one.whereNull('account_news_at').orWhere('account_news_at', '<=', at));
      if ((await fresh.update({ account_news_at: at })) === 0) return 0;
      return 'broken' in effect
        ? connection.where({ status: 'connected' }).update(breaking(effect.broken, now))
        : connection.where({ status: 'broken', broken_reason: effect.healed }).update(healing);
    }),

  updateNumber: async (
    id: string,
    facts: { displayPhoneNumber: string | null; qualityRating: string },
  ): Promise<void> => {
    await db('whatsapp_connections')
      .where({ id: idBytes(id) })
      .update({
        quality_rating: facts.qualityRating,
        display_phone_number: facts.displayPhoneNumber,
      });
  },
});
