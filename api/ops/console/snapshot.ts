// One look at everything that can be wrong; pages that are made within a second share it.

import { second } from '../../../lib/kernel/clock.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { ask } from '../ask.ts';
import type { OpsJsonRoute } from '../route.ts';
import { pendingCapacity } from '../routes/accounts.ts';
import { channelsNow } from '../routes/channels.ts';
import { health, processes } from '../routes/overview.ts';
import { platformNow } from '../routes/platform.ts';
import { queuesNow } from '../routes/queues.ts';
import type { Standing } from './layout.ts';
import { type PauseNotes, pauseNotes, pauseOf } from './paused.ts';
import { type Problem, problemsOf, type SeenChannel, type Snapshot } from './problems.ts';
import { attempt } from './section.ts';
import { type Channel, seenChannel, seenSwitches } from './seen.ts';

export type Look = { snapshot: Snapshot; problems: Problem[] };

const shareMs = second;
const looker = { caller: { actor: 'console', csrf: undefined }, requestId: 'console' };

/** A channel that is paused as a whole stands for all its numbers. */
const seenChannels = (app: OpsApp, items: readonly Channel[], notes: PauseNotes): SeenChannel[] => {
  const whole = pauseOf(app, notes, 'whatsapp');
  const all: SeenChannel[] = whole
    ? [
        {
          ...{ name: 'WhatsApp', job: 'whatsapp.send', state: 'paused', since: null, error: null },
          paused: whole,
        },
      ]
    : [];
  const shown = items.filter(
    ({ status, channel }) => status !== 'not_configured' && !(whole && channel === 'whatsapp'),
  );
  return [
    ...all,
    ...shown.map((one) => {
      const number = one.channel === 'telegram' ? undefined : one.id;
      return seenChannel(one, pauseOf(app, notes, one.channel, number));
    }),
  ];
};

const look = async (app: OpsApp): Promise<Look> => {
  const one = async <B, P, Q, R>(route: OpsJsonRoute<B, P, Q, R>): Promise<R | undefined> => {
    const found = await attempt(() => ask(app, route, looker));
    return 'value' in found ? found.value : undefined;
  };
  const [checked, alive, queues, channels, platform, capacity, notes] = await Promise.all([
    ...([one(health), one(processes), one(queuesNow)] as const),
    ...([one(channelsNow), one(platformNow), one(pendingCapacity)] as const),
    pauseNotes(app, looker),
  ]);
  const snapshot: Snapshot = {
    ...{ checks: checked?.checks, processes: alive?.items, queues: queues?.items },
    channels: channels && seenChannels(app, channels.items, notes),
    switches: platform && seenSwitches(platform),
    capacityPending: capacity?.items.length,
  };
  return { snapshot, problems: problemsOf(snapshot) };
};

const shared = new WeakMap<OpsApp, { at: number; looking: Promise<Look> }>();

/** What is known now, and what is wrong with it. */
export const lookAround = (app: OpsApp): Promise<Look> => {
  const now = performance.now();
  const known = shared.get(app);
  if (known && now - known.at < shareMs) return known.looking;
  const looking = look(app);
  shared.set(app, { at: now, looking });
  return looking;
};

export const standingOf = ({ problems }: Look): Standing => ({
  count: problems.filter(({ severity }) => severity !== 'note').length,
  worst: problems[0]?.severity,
  away: problems.filter(({ about }) => about.startsWith('engine ')).map(({ text }) => text),
});
