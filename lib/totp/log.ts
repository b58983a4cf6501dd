// The log of TOTP verifications, page by page.
import { cursorOf } from '../kernel/cursor.ts';
import { idTime } from '../kernel/ids.ts';
import type { AttemptStore, LogEntry, LogFilter } from './attempt-store.ts';

/** Newest first; `nextBefore` is null when nothing older is left. */
export const listTotpLog = async (
  { attempts }: { attempts: AttemptStore },
  accountId: string,
  filter: Partial<LogFilter> & { limit: number },
): Promise<{ entries: (LogEntry & { at: number })[]; nextBefore: string | null }> => {
  const { limit, before, status, mode } = filter;
  const found = await attempts.list(accountId, { before, status, mode, limit: limit + 1 });
  const entries = found.slice(0, limit).map((entry) => ({ ...entry, at: idTime(entry.id) }));
  const last = entries.at(-1);
  return { entries, nextBefore: found.length > limit && last ? cursorOf(last.id) : null };
};
