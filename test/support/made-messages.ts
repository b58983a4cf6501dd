// Messages that a test writes into MySQL by itself, of every kind, with their rollups.
import { idAt, idBytes } from '../../lib/kernel/ids.ts';
import { countAgain } from './rollups.ts';
import type { Customer, Stack } from './stack.ts';

let made = 0;
const idOf = (at: number): string => {
  made += 1;
  return `${idAt(at).slice(0, 14)}7000-8000-${String(made).padStart(12, '0')}`;
};

export type Made = { id: string; at: number; status: string; channel: string | null; mode: string };

export const statuses = ['sent', 'verified', 'failed', 'expired'] as const;
const channels = ['whatsapp', 'telegram', null] as const;

/** Messages spread over the last days, one of every kind after the other. */
export const insertMessages = async (
  stack: Stack,
  { accountId }: Customer,
  count: number,
  spreadMs: number,
): Promise<Made[]> => {
  const now = stack.worker.clock.now();
  const all = Array.from({ length: count }, (_, index): Made => {
    const at = Math.floor(now - ((index * 7919) % count) * (spreadMs / count));
    return {
      ...{ id: idOf(at), at, status: statuses[index % 4] ?? 'sent' },
      ...{ channel: channels[index % 3] ?? null, mode: index % 5 === 0 ? 'test' : 'live' },
    };
  });
  await stack.api.db.batchInsert(
    'messages',
    all.map(({ id, at, status, channel, mode }) => ({
      ...{ id: idBytes(id), account_id: idBytes(accountId), mode, origin: 'send', status, channel },
      ...{ phone: '+14155550123', country: 'US', request_id: 'r', plan: 'pay_per_success' },
      ...{ price_micros: 50_000, accepted_at: channel ? at + 10 : null },
      delivered_at: channel && status !== 'failed' ? at + 1_010 : null,
      verified_at: status === 'verified' ? at + 20_010 : null,
      failure_reason: status === 'failed' ? 'not_on_channel' : null,
    })),
    200,
  );
  await countAgain(
    stack,
    accountId,
    all.map(({ at }) => at),
  );
  return all.toSorted((one, other) => (one.id < other.id ? 1 : -1));
};
