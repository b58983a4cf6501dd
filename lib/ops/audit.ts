// Doing something and having it on record: nothing is done that could not be written down first.
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, second } from '../kernel/clock.ts';
import { ServiceError } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { AuditEntry, AuditStatus, AuditStore } from './audit-store.ts';

export type Act = {
  actor: string;
  action: string;
  subject: string;
  detail: Record<string, unknown>;
  requestId: string;
};

export type ActEnd = { status: AuditStatus; affected: number | null; error: string | null };

/** The audit log as it is written: each act has a first word and a last one. */
export type Trail = Chore & {
  /** Writes down that something begins. @throws when MySQL is away: then it must not begin */
  begin(act: Act): Promise<AuditEntry>;
  /** Writes down how it ended. Never throws: what MySQL does not take now is written as soon as it does. */
  end(id: string, end: ActEnd): Promise<void>;
  /** Does `work` between the two words; `affected` counts what it was about. Passes on what `work` answers or throws. */
  around<T>(act: Act, work: () => Promise<T>, affected?: (done: T) => number): Promise<T>;
};

const subjectMax = 120;
const againEveryMs = second;

const describe = (error: unknown): string =>
  error instanceof ServiceError ? error.code : describeError(error);

export const createTrail = (deps: { audit: AuditStore; clock: Clock; log: Log }): Trail => {
  const { audit, clock, log } = deps;
  /** Last words that MySQL has not taken yet. */
  const unwritten = new Map<string, ActEnd & { at: number }>();

  const write = async (): Promise<void> => {
    for (const [id, end] of unwritten) {
      await audit.update(id, end);
      unwritten.delete(id);
    }
  };
  const chore = repeat(write, againEveryMs, log);

  const begin: Trail['begin'] = async (act) => {
    const entry: AuditEntry = {
      ...{ ...act, id: newId(), subject: act.subject.slice(0, subjectMax) },
      ...{ affected: null, status: 'running', error: null, updatedAt: clock.now() },
    };
    await audit.insert(entry);
    return entry;
  };

  const end: Trail['end'] = async (id, how) => {
    const said = { ...how, at: clock.now() };
    try {
      await audit.update(id, said);
    } catch (error) {
      // The log has it whatever becomes of this process.
      log.error({ audit_id: id, ...how, reason: describeError(error) }, 'act not on record yet');
      unwritten.set(id, said);
    }
  };

  return {
    begin,
    end,
    around: async (act, work, affected = () => 1) => {
      const { id } = await begin(act);
      try {
        const done = await work();
        await end(id, { status: 'done', affected: affected(done), error: null });
        return done;
      } catch (error) {
        await end(id, { status: 'failed', affected: 0, error: describe(error) });
        throw error;
      }
    },
    start: chore.start,
    stop: async () => {
      await chore.stop();
      await write().catch((error: unknown) =>
        log.error({ left: unwritten.size, reason: describeError(error) }, 'acts not on record'),
      );
    },
  };
};
