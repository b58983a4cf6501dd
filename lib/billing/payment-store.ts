// Payments received and taken back, in MySQL: each once, under the provider's name for it.
import type { Database } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';

export type ReceivedPayment = {
  /** The provider's name of the payment. */
  name: string;
  /** Whom the provider says it is for, as it says it. */
  account: string;
  /** The account of that name, if there is one. */
  accountId: string | null;
  amountMicros: number;
  /** The provider's name of the transfer, by which it speaks of what is taken back. */
  intent: string | null;
  at: number;
};

export type ReceivedReversal = {
  name: string;
  intent: string;
  /** What was taken back; negative: returned. */
  amountMicros: number;
  note: string;
  at: number;
};

/** What was taken back of a payment of a known account. */
export type OwnedReversal = { accountId: string; name: string; amountMicros: number; note: string };

type Row = Record<string, unknown>;

export type PaymentStore = ReturnType<typeof createPaymentStore>;

export const createPaymentStore = (db: Database) => ({
  /** Keeps a payment; one that is known stays as it is. */
  keep: async (payment: ReceivedPayment): Promise<void> => {
    const { name, account, accountId, amountMicros, intent, at } = payment;
    await db('payments')
      .insert({
        ...{ name, account: account.slice(0, 200), amount_micros: amountMicros, received_at: at },
        ...{ account_id: accountId === null ? null : idBytes(accountId), intent },
      })
      .onConflict()
      .ignore();
  },

  /** Keeps what was taken back; one that is known stays as it is. */
  keepReversal: async ({ name, intent, amountMicros, note, at }: ReceivedReversal) => {
    await db('payment_reversals')
      .insert({ name, intent, amount_micros: amountMicros, note, received_at: at })
      .onConflict()
      .ignore();
  },

  /**
   * A taking back came to nothing. Answers how much was kept for it; one that is not known is kept as nothing, so that
   * late news of it takes nothing any more.
   */
  endReversal: async (given: Omit<ReceivedReversal, 'amountMicros'>): Promise<number> => {
    const { name, intent, note, at } = given;
    await db('payment_reversals')
      .insert({ name, intent, amount_micros: 0, note, received_at: at })
      .onConflict()
      .ignore();
    const row = await db<Row>('payment_reversals').where({ name }).first('amount_micros');
    return Number(row?.amount_micros ?? 0);
  },

  /** What was taken back of the payment behind a transfer, if it is one of an account we know. */
  reversalsOf: async (intent: string): Promise<OwnedReversal[]> => {
    const rows = await db<Row>('payment_reversals as r')
      .join('payments as p', 'p.intent', 'r.intent')
      .where('r.intent', intent)
      .whereNotNull('p.account_id')
      .where('r.amount_micros', '<>', 0)
      .select('p.account_id', 'r.name', 'r.amount_micros', 'r.note');
    return rows.map((row) => ({
      accountId: idText(row.account_id as Buffer),
      name: String(row.name),
      amountMicros: Number(row.amount_micros),
      note: String(row.note),
    }));
  },

  /** Payments for nobody we know, the oldest first. */
  unclaimed: async (limit: number) => {
    const rows = await db<Row>('payments')
      .whereNull('account_id')
      .orderBy('received_at')
      .limit(limit);
    return rows.map((row) => ({
      name: String(row.name),
      account: String(row.account),
      amountMicros: Number(row.amount_micros),
      at: Number(row.received_at),
    }));
  },

  /** Gives a payment for nobody we know to an account; undefined when there is none such. */
  assign: async (
    name: string,
    accountId: string,
  ): Promise<{ amountMicros: number; intent: string | null } | undefined> => {
    const id = idBytes(accountId);
    await db('payments').where({ name, account_id: null }).update({ account_id: id });
    const now = await db<Row>('payments').where({ name, account_id: id }).first();
    return (
      now && {
        amountMicros: Number(now.amount_micros),
        intent: now.intent === null ? null : String(now.intent),
      }
    );
  },
});
