// A write of an operator as the routes make it: on record before it begins and after it ends.
import type { Act } from '../../lib/ops/audit.ts';
import type { OpsApp } from '../../lib/ops-app.ts';
import type { OpsCaller } from './auth.ts';

type What<T> = Pick<Act, 'action' | 'subject' | 'detail'> & {
  /** How much it was about, once it is done; left out: one. */
  affected?: (done: T) => number;
};

/** Does `work` and answers what it answers; both words go to the audit log. */
export const act = <T>(
  app: OpsApp,
  request: { caller: OpsCaller; requestId: string },
  { affected, ...what }: What<T>,
  work: () => Promise<T>,
): Promise<T> => {
  const { caller, requestId } = request;
  return app.trail.around({ ...what, actor: caller.actor, requestId }, work, affected);
};
