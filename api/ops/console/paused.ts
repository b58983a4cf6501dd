// Who paused what, when and why: the switch says since when, the audit log says the rest.
import type { OpsApp } from '../../../lib/ops-app.ts';
import { type Asked, ask } from '../ask.ts';
import { auditLog } from '../routes/audit.ts';
import type { SeenChannel } from './problem.ts';
import { attempt } from './section.ts';

const looked = 100;

export type PauseNotes = ReadonlyMap<string, { by: string; reason: string }>;

/** The newest word on pausing each subject; nothing while MySQL is away. */
export const pauseNotes = async (
  app: OpsApp,
  looker: Pick<Asked, 'caller' | 'requestId'>,
): Promise<PauseNotes> => {
  const query = { action: 'channel.pause', limit: looked };
  const found = await attempt(() => ask(app, auditLog, { ...looker, query }));
  const items = 'value' in found ? found.value.items : [];
  // Whoever paused what was paused already has not paused it.
  const pausing = items.filter(({ affected }) => affected !== 0);
  // Newest first, and the last one written wins.
  return new Map(
    pausing.toReversed().map(({ subject, actor, detail }) => {
      const { note } = detail as { note?: unknown };
      return [subject, { by: actor, reason: typeof note === 'string' ? note : '' }];
    }),
  );
};

/** How a pause is told: `number` is undefined for a whole channel. Undefined while it is not paused. */
export const pauseOf = (
  app: Pick<OpsApp, 'pauses'>,
  notes: PauseNotes,
  channel: 'whatsapp' | 'telegram',
  number?: string,
): SeenChannel['paused'] => {
  const since = app.pauses.since(channel, number);
  if (since === undefined) return null;
  const { by, reason } = notes.get(number === undefined ? channel : `${channel} ${number}`) ?? {
    ...{ by: 'an operator', reason: '' },
  };
  return { by, reason, at: new Date(since).toISOString() };
};
