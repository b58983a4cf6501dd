// One look at everything that can be wrong; pages that are made within a second share it.

import { second } from '../../../lib/kernel/clock.ts';
import { describeError } from '../../../lib/kernel/redact.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { ask } from '../ask.ts';
import type { OpsJsonRoute } from '../route.ts';
import { pendingCapacity } from '../routes/accounts.ts';
import { channelsWatched } from '../routes/channels.ts';
import { health, processes } from '../routes/overview.ts';
import { unclaimedPayments } from '../routes/payments.ts';
import { platformNow } from '../routes/platform.ts';
import { queuesNow } from '../routes/queues.ts';
import type { Standing } from './layout.ts';
import { type PauseNotes, pauseNotes, pauseOf } from './paused.ts';
import type { Problem, SeenChannel, Snapshot, Unseen } from './problem.ts';
import { problemsOf } from './problems.ts';
import { attempt } from './section.ts';
import { type Channel, seenBooks, seenChannel, seenSwitches } from './seen.ts';

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
  const unseen: Unseen[] = [];
  const one = async <B, P, Q, R>(
    what: string,
    route: OpsJsonRoute<B, P, Q, R>,
  ): Promise<R | undefined> => {
    const found = await attempt(() => ask(app, route, looker)).catch((error: unknown) => {
      // One part that breaks must not take all pages with it.
      app.log.warn({ what, reason: describeError(error) }, 'could not be looked at');
      return { why: 'Something went wrong on our side: the log of the ops process says what.' };
    });
    if ('value' in found) return found.value;
    unseen.push({ what, why: found.why });
    return undefined;
  };
  const [checked, alive, queues, channels, platform, capacity, payments, notes] = await Promise.all(
    [
      ...([one('engines', health), one('processes', processes)] as const),
      ...([one('queues', queuesNow), one('channels', channelsWatched)] as const),
      ...([one('switches', platformNow), one('requests for capacity', pendingCapacity)] as const),
      one('payments', unclaimedPayments),
      pauseNotes(app, looker),
    ],
  );
  const snapshot: Snapshot = {
    ...{ checks: checked?.checks, processes: alive?.items, queues: queues?.items },
    channels: channels && seenChannels(app, channels.items, notes),
    switches: platform && seenSwitches(platform),
    books: platform && seenBooks(platform),
    capacityPending: capacity?.items.length,
    paymentsUnclaimed: payments && { count: payments.items.length, more: payments.more },
    unseen,
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
