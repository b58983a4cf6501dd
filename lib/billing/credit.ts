// Money that operators give or take: credit, and corrections; the ops listener and the seed use it.

import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Poster } from './post.ts';
import type { Posted } from './posting-store.ts';
import type { Posting } from './rules.ts';

export type CreditCommand = {
  accountId: string;
  amountMicros: number;
  /** Names the transfer: asked for twice under one name, it is made once. */
  name: string;
  note: string | null;
};

const give = async (
  { poster, clock }: { poster: Poster; clock: Clock },
  command: CreditCommand,
  kind: 'deposit' | 'grant' | 'adjust',
): Promise<Posted> => {
  const posting: Posting = {
    ...{ accountId: command.accountId, kind, amountMicros: command.amountMicros },
    ...{ reference: `${kind}:${command.name}`, note: command.note, at: clock.now() },
    ...{ plan: null, priceMicros: null, messageId: null, usesTrial: false },
  };
  if (!Number.isSafeInteger(command.amountMicros)) throw fail('INTERNAL_ERROR');
  return (await poster.post(posting)).posted;
};

/** A payment that was received; the first one ends "never made a deposit". Says whether it was booked before. */
export const deposit = (deps: { poster: Poster; clock: Clock }, command: CreditCommand) =>
  give(deps, command, 'deposit');

/** A correction by hand, up or down. Says whether it was booked before. */
export const adjust = (deps: { poster: Poster; clock: Clock }, command: CreditCommand) =>
  give(deps, command, 'adjust');
