// A write of an operator as the routes make it: on record before it begins and after it ends.
import { type Act, audited } from '../../lib/ops/audit.ts';
import type { OpsApp } from '../../lib/ops-app.ts';
import type { OpsCaller } from './auth.ts';

/** Does `work` and answers what it answers; both words go to the audit log. */
export const act = <T>(
  app: OpsApp,
  request: { caller: OpsCaller; requestId: string },
  what: Pick<Act, 'action' | 'subject' | 'detail'>,
  work: () => Promise<T>,
): Promise<T> =>
  audited(app, { ...what, actor: request.caller.actor, requestId: request.requestId }, work);
