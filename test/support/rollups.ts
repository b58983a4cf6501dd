// Rollups of messages that a test wrote into MySQL by itself, where no event says that they are there.
import { hour } from '../../lib/kernel/clock.ts';
import { refreshAll } from '../../lib/reports/refresh.ts';
import type { Stack } from './stack.ts';

/** Counts the hours of an account in which the given moments (ms) lie. */
export const countAgain = async (
  { worker }: Pick<Stack, 'worker'>,
  accountId: string,
  moments: readonly number[],
): Promise<void> => {
  const hours = new Set(moments.map((at) => Math.floor(at / hour)));
  await worker.rollupStore.mark([...hours].map((at) => ({ slot: 0, accountId, hour: at })));
  // The worker's own chore may have its turn meanwhile.
  while ((await worker.rollupStore.oldestMark(accountId)) !== undefined) {
    await refreshAll(worker);
  }
};
