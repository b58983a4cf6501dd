// Checkouts that this service opened, in MySQL: which account a payment is booked to.
import type { Database } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

export type CheckoutStore = ReturnType<typeof createCheckoutStore>;

export const createCheckoutStore = (db: Database) => ({
  /** Writes a checkout before the provider is asked for its page; `id` is ours, `at` ms. */
  open: async (checkout: {
    id: string;
    accountId: string;
    amountMicros: number;
    at: number;
  }): Promise<void> => {
    const { id, accountId, amountMicros, at } = checkout;
    await db('checkouts').insert({
      id: idBytes(id),
      account_id: idBytes(accountId),
      amount_micros: amountMicros,
      opened_at: at,
    });
  },

  /**
   * The account of a checkout that this service opened. `session` is the provider's name of the payment: the first one
   * is the checkout's for good, and undefined is answered for any other. The same payment told again is the same.
   */
  accountOf: async (id: string, session: string): Promise<string | undefined> => {
    await db('checkouts')
      .where({ id: idBytes(id), session: null })
      .update({ session });
    const row = await db<Row>('checkouts')
      .where({ id: idBytes(id), session })
      .first('account_id');
    return row && idText(row.account_id as Buffer);
  },
});
