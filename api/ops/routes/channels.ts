// The channels: how they fare, and pausing them.

import { invalid } from '../../../lib/kernel/errors.ts';
import { plainLine } from '../../../lib/kernel/plain-text.ts';
import { integer, object, oneOf, optional, text, withDefault } from '../../../lib/kernel/schema.ts';
import {
  type ChannelView,
  readChannels,
  setChannelPaused,
  watchedChannels,
} from '../../../lib/ops/channels.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { act } from '../act.ts';
import { idText, isoOrNull } from '../fields.ts';
import { type OpsRequest, opsRoute } from '../route.ts';

const channelView = (one: ChannelView) => ({
  channel: one.channel,
  id: one.id,
  kind: one.kind,
  status: one.status,
  since: isoOrNull(one.since),
  account: one.account,
  display_phone_number: one.displayPhoneNumber,
  quality_rating: one.qualityRating,
  broken_reason: one.brokenReason,
  breaker: one.breaker,
  last_hour: one.hour && {
    calls: one.hour.calls,
    accepted: one.hour.accepted,
    refused: one.hour.refused,
    unknown: one.hour.unknown,
    success_rate: one.hour.successRate,
    mean_ms: one.hour.meanMs,
    p50_ms: one.hour.p50Ms,
    p95_ms: one.hour.p95Ms,
    errors: one.hour.errors,
    minutes: one.hour.minutes,
    recent: one.hour.recent,
  },
});

export const channelsNow = opsRoute({
  ...{ method: 'GET', path: '/ops/api/channels' },
  summary:
    'WhatsApp (the shared number and connected ones, those in trouble first) and Telegram in the last hour.',
  query: object({
    limit: withDefault(integer().min(1).max(200), 50),
    /** The number at WhatsApp that was the last one of the part before. */
    before: optional(text().pattern(/^\d{5,20}$/)),
    account: optional(idText()),
  }),
  handle: async (app, { query }) => {
    const { items, next } = await readChannels(app, app.sharedQuality, query);
    return { items: items.map(channelView), next_before: next };
  },
});

export const channelsWatched = opsRoute({
  ...{ method: 'GET', path: '/ops/api/channels/watched' },
  summary: 'The shared number, Telegram, and the connected numbers that are in trouble.',
  handle: async (app) => ({
    items: (await watchedChannels(app, app.sharedQuality)).map(channelView),
  }),
});

const pauseBody = object({
  channel: oneOf('whatsapp', 'telegram'),
  /** Id of a WhatsApp number; left out: the whole channel. */
  number: optional(text().pattern(/^\d{5,20}$/)),
  note: withDefault(plainLine().max(200).allow(''), ''),
});

type PauseRequest = OpsRequest<typeof pauseBody, undefined, undefined>;

const setPaused = async (app: OpsApp, request: PauseRequest, paused: boolean) => {
  const { channel, number: numberId, note } = request.body;
  if (numberId !== undefined && channel !== 'whatsapp') {
    throw invalid({ field: 'number', issue: 'only WhatsApp has numbers' });
  }
  const subject = numberId === undefined ? channel : `${channel} ${numberId}`;
  const action = paused ? 'channel.pause' : 'channel.resume';
  const what = { action, subject, detail: { note }, affected: Number };
  const changed = await act(app, request, what, () =>
    setChannelPaused(app, { channel, numberId, paused }),
  );
  return { channel, number: numberId ?? null, paused, changed };
};

export const pauseChannel = opsRoute({
  ...{ method: 'POST', path: '/ops/api/channels/pause' },
  summary: 'Sends nothing more over a channel or a number, on every process within a second.',
  body: pauseBody,
  handle: (app, request) => setPaused(app, request, true),
});

export const resumeChannel = opsRoute({
  ...{ method: 'POST', path: '/ops/api/channels/resume' },
  summary: 'Lets a paused channel or number send again.',
  body: pauseBody,
  handle: (app, request) => setPaused(app, request, false),
});

export const channelRoutes = [channelsNow, channelsWatched, pauseChannel, resumeChannel];
