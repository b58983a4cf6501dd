// Money that operators book, with the whole truth about it: booked now, or long ago under the same reference.
import { adjust, type CreditCommand, deposit } from '../billing/credit.ts';
import type { LedgerStore } from '../billing/ledger-store.ts';
import type { Poster } from '../billing/post.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { toUsd } from '../kernel/money.ts';

export type BookingDeps = {
  poster: Poster;
  ledger: Pick<LedgerStore, 'findPosting'>;
  clock: Clock;
};

/** `booked` is false when the reference was booked before, with the same amount: nothing has changed then. */
export type Booked = { reference: string; booked: boolean };

/**
 * Books a deposit or a correction once per account and name, however often it is asked for.
 * @throws VALIDATION_ERROR when the name stands for another amount, NOT_FOUND
 */
export const book = async (
  deps: BookingDeps,
  kind: 'deposit' | 'adjust',
  command: CreditCommand,
): Promise<Booked> => {
  const posted = await (kind === 'deposit' ? deposit(deps, command) : adjust(deps, command));
  if (posted === 'no_account') throw fail('NOT_FOUND');
  const reference = `${kind}:${command.name}`;
  if (posted === 'posted') return { reference, booked: true };
  const before = await deps.ledger.findPosting(command.accountId, reference);
  if (before && before.amountMicros !== command.amountMicros) {
    const amount = toUsd(before.amountMicros);
    throw invalid({ field: 'reference', issue: `was booked already, with an amount of ${amount}` });
  }
  return { reference, booked: false };
};
