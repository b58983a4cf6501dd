// Messages as their owner reads them: pages, the newest, one with all its steps, all as CSV.
import { csvLine } from '../kernel/csv.ts';
import { cursorOf } from '../kernel/cursor.ts';
import { fail } from '../kernel/errors.ts';
import { derivedId, fromMessageId, idTime, toMessageId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';
import type { Mode } from '../messages/rules.ts';
import type { MessageFilter, MessageItem, ReportStore } from './store.ts';
import { stepsOf, stepView } from './timeline.ts';

type Deps = { reports: ReportStore };

const exportPage = 1_000;

const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

export const messageView = (item: MessageItem) => ({
  message_id: toMessageId(item.id),
  phone: item.phone,
  country: item.country,
  status: item.status,
  channel: item.channel,
  mode: item.mode,
  origin: item.origin,
  created_at: new Date(idTime(item.id)).toISOString(),
  expires_at: isoOrNull(item.expiresAt),
  delivered_at: isoOrNull(item.deliveredAt),
  verified_at: isoOrNull(item.verifiedAt),
  failure_reason: item.status === 'failed' ? item.failureReason : null,
  fallback_used: item.channel === 'telegram',
  price: toUsd(item.priceMicros),
});

export type MessageQuery = Partial<Omit<MessageFilter, 'limit'>> & { limit: number };

const filterOf = (query: MessageQuery): MessageFilter => ({
  ...{ before: undefined, status: undefined, channel: undefined, mode: undefined },
  ...{ from: undefined, to: undefined, ...query },
});

/** GET /v1/clients/otps: newest first; `next_before` goes on behind the last. */
export const listMessages = async ({ reports }: Deps, accountId: string, query: MessageQuery) => {
  const filter = filterOf(query);
  const found = await reports.list(accountId, { ...filter, limit: filter.limit + 1 });
  const items = found.slice(0, filter.limit);
  const last = items.at(-1);
  const more = found.length > filter.limit && last;
  return { items: items.map(messageView), next_before: more ? cursorOf(last.id) : null };
};

/**
 * GET /v1/clients/otps/{message_id}/timeline; `mode` undefined: the caller may read both.
 * @throws NOT_FOUND, also for a message of another account or of the other mode
 */
export const timeline = async (
  { reports }: Deps,
  accountId: string,
  messageId: string,
  mode: Mode | undefined,
) => {
  const id = fromMessageId(messageId);
  const item = id && (await reports.find(accountId, id));
  if (!id || !item || item.mode !== (mode ?? item.mode)) throw fail('NOT_FOUND');
  const events = await reports.events(id);
  const eventIds = [...events.map((event) => event.id), derivedId(id, 'otp.completed')];
  const [postings, attempts] = await Promise.all([
    reports.postings(accountId, id),
    reports.webhookAttempts(accountId, eventIds),
  ]);
  const steps = stepsOf({ requestedAt: idTime(id), events, postings, attempts });
  return { message: messageView(item), steps: steps.map(stepView) };
};

const columns = [
  ...['message_id', 'created_at', 'phone', 'country', 'status', 'channel', 'mode', 'origin'],
  ...['expires_at', 'delivered_at', 'verified_at', 'failure_reason', 'price'],
] as const;

/** All messages that fit, as lines of CSV, read in pages so that memory stays what it is. */
export async function* messagesCsv({ reports }: Deps, accountId: string, query: MessageQuery) {
  yield csvLine(columns);
  let { before } = query;
  for (;;) {
    const page = await reports.list(accountId, { ...filterOf(query), before, limit: exportPage });
    for (const item of page) {
      const view = messageView(item) as Record<string, string | number | null | boolean>;
      yield csvLine(columns.map((name) => view[name] as string | number | null));
    }
    if (page.length < exportPage) return;
    before = page.at(-1)?.id;
  }
}
