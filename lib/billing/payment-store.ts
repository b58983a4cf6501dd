// Payments received, in MySQL: each once, under the provider's name for it.
import type { Database } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';

export type ReceivedPayment = {
  /** The provider's name of the payment. */
  name: string;
  /** Whom the provider says it is for, as it says it. */
  account: string;
  /** The account of that name, if there is one. */
  accountId: string | null;
  amountMicros: number;
  at: number;
};

export type PaymentStore = ReturnType<typeof createPaymentStore>;

export const createPaymentStore = (db: Database) => ({
  /** Keeps a payment; one that is known stays as it is. */
  keep: async ({ name, account, accountId, amountMicros, at }: ReceivedPayment): Promise<void> => {
    await db('payments')
      .insert({
        ...{ name, account: account.slice(0, 200), amount_micros: amountMicros, received_at: at },
        account_id: accountId === null ? null : idBytes(accountId),
      })
      .onConflict()
      .ignore();
  },

  /** Gives a payment for nobody we know to an account; answers its amount, undefined when there is none such. */
  assign: async (name: string, accountId: string): Promise<number | undefined> => {
    const found = await db<Record<string, unknown>>('payments').where({ name }).first();
    if (!found) return undefined;
    const id = idBytes(accountId);
    await db('payments').where({ name, account_id: null }).update({ account_id: id });
    const now = await db<Record<string, unknown>>('payments')
      .where({ name, account_id: id })
      .first();
    return now === undefined ? undefined : Number(now.amount_micros);
  },
});
