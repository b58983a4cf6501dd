// What customers read about their messages: lists, the steps of one, analytics (spec section 4).
import {
  decimal,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
  withDefault,
} from '../../lib/kernel/schema.ts';
import { readableMode } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { analytics, channels, funnel, timeseries } from '../../lib/reports/analytics.ts';
import { listMessages, messagesCsv, timeline } from '../../lib/reports/messages.ts';
import { stepTypes } from '../../lib/reports/timeline.ts';
import {
  channelName,
  failureReason,
  listQuery,
  messageId,
  messageStatus,
  mode,
  moment,
  nullableTimestamp,
  page,
  phone,
  timestamp,
  yesNo,
} from '../fields.ts';
import { csvRoute, route } from '../route.ts';

const tag = 'Logs';
const analyticsTag = 'Analytics';

const message = () =>
  object({
    message_id: messageId(),
    phone: phone(),
    country: text().description('ISO 3166 code of the destination.'),
    status: messageStatus(),
    channel: nullable(channelName()),
    mode: mode(),
    origin: oneOf('send', 'deliver').description('Which call it came from.'),
    created_at: timestamp(),
    expires_at: nullableTimestamp(),
    delivered_at: nullableTimestamp(),
    verified_at: nullableTimestamp(),
    failure_reason: failureReason(),
    fallback_used: yesNo().description('The code went out over Telegram.'),
    price: decimal().description('Price frozen when it was sent, USD.'),
  });

const filters = {
  status: optional(messageStatus()),
  channel: optional(channelName()),
  mode: optional(mode().description('Only these; a key reads its own mode alone.')),
  from: optional(moment().description('Created at or after; RFC 3339, or a date (midnight UTC).')),
  to: optional(moment().description('Created before; RFC 3339, or a date (midnight UTC).')),
};

const recent = route({
  ...{ method: 'GET', path: '/v1/clients/otps/recent', tag, auth: 'account' },
  summary: 'The newest messages; by key, those of its mode.',
  query: object({
    limit: withDefault(integer().min(1).max(50).description('How many.'), 10),
  }),
  data: page(message()),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    const own = { ...query, mode: readableMode(keyMode) };
    const { items } = await listMessages(app, account.id, own);
    return { items, next_before: null };
  },
});

const otps = route({
  ...{ method: 'GET', path: '/v1/clients/otps', tag, auth: 'account' },
  summary: 'Messages, newest first, by state, channel, mode and time.',
  query: object({ ...listQuery(100), ...filters }),
  data: page(message()),
  handle: async (app, { account, keyMode, query }) => {
    const readable = readableMode(keyMode, query.mode);
    await takeRead(app.reads, 'read', account.id);
    return listMessages(app, account.id, { ...query, mode: readable });
  },
});

const otpsExport = csvRoute({
  ...{ method: 'GET', path: '/v1/clients/otps/export', tag },
  summary: 'Messages as CSV, newest first, by the filters of the list.',
  file: 'messages.csv',
  query: object(filters),
  rows: async (app, { account, keyMode, query }) => {
    const readable = readableMode(keyMode, query.mode);
    await takeRead(app.reads, 'export', account.id);
    return messagesCsv(app, account.id, { ...query, mode: readable, limit: 0 });
  },
});

const timelineRoute = route({
  ...{ method: 'GET', path: '/v1/clients/otps/{message_id}/timeline', tag, auth: 'account' },
  summary: 'Every step a message took.',
  errors: ['NOT_FOUND'],
  params: object({ message_id: messageId() }),
  data: object({
    message: message(),
    steps: list(
      object({
        at: timestamp(),
        type: oneOf(...stepTypes).description('What happened; otp.requested is the call itself.'),
        channel: nullable(text()),
        reason: nullable(text()).description('Why it failed, or why the fallback was used.'),
        attempt: nullable(integer()).description('Which try it was: of a worker, of a webhook.'),
        amount: nullable(decimal()).description('USD; what is charged is negative.'),
        event: nullable(text()).description('The event a webhook was told of.'),
        http_status: nullable(integer()).description('What the webhook answered.'),
      }),
    ),
  }),
  handle: async (app, { account, keyMode, params }) => {
    await takeRead(app.reads, 'read', account.id);
    return timeline(app, account.id, params.message_id, readableMode(keyMode));
  },
});

const count = (about: string) => integer().min(0).description(about);
const share = (about: string) => nullable(decimal().min(0)).description(`${about}, 0 to 1.`);

const totals = {
  requested: count('Sends that were admitted and recorded.'),
  accepted: count('Those a channel took.'),
  delivered: count('Those that arrived.'),
  verified: count('Those whose code was entered.'),
  failed: count('Those no channel delivered.'),
  expired: count('Those whose code nobody entered in time.'),
  delivery_rate: share('Delivered of requested'),
  conversion_rate: share('Verified of accepted'),
  spend: decimal().description('What they cost, USD.'),
};

const percentiles = (about: string) =>
  object({
    p50: nullable(integer()),
    p95: nullable(integer()),
    p99: nullable(integer()),
  }).description(`${about}, ms: exact to a few hundred ms up to two seconds, coarser beyond.`);

const latencies = () => ({
  mean_delivery_ms: nullable(integer()).description('From acceptance to arrival.'),
  mean_verification_ms: nullable(integer()).description('From acceptance to the code.'),
  delivery_ms: percentiles('From acceptance to arrival'),
  verification_ms: percentiles('From acceptance to the code'),
});

const periodQuery = () =>
  object({
    period: withDefault(integer().min(1).max(365).description('Whole UTC days, ending today.'), 30),
  });

const frame = {
  period: integer(),
  from: timestamp(),
  to: timestamp(),
  as_of: timestamp().description('Up to when news of messages is counted; a few seconds ago.'),
};

const analyticsAbout =
  'By session these are the live messages; a key counts the messages of its own mode.';

const analyticsRoute = route({
  ...{ method: 'GET', path: '/v1/clients/analytics', tag: analyticsTag, auth: 'account' },
  summary: 'Totals of a period beside those of the period before.',
  about: analyticsAbout,
  query: periodQuery(),
  data: object({
    ...frame,
    totals: object(totals),
    previous: object(totals),
    countries: list(
      object({ country: text().description('Destination.'), ...totals, ...latencies() }),
    ).description('The totals by destination, most messages first.'),
    modes: list(object({ mode: mode(), ...totals })).description(
      'By session live and test beside each other; by key its own mode alone.',
    ),
  }),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return analytics(app, account.id, { days: query.period, keyMode });
  },
});

const timeseriesRoute = route({
  ...{
    method: 'GET',
    path: '/v1/clients/analytics/timeseries',
    tag: analyticsTag,
    auth: 'account',
  },
  summary: 'The totals over time: by hour up to two days, by day beyond; without gaps.',
  about: analyticsAbout,
  query: periodQuery(),
  data: object({
    ...frame,
    interval: oneOf('hour', 'day'),
    points: list(object({ at: timestamp(), ...totals })),
  }),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return timeseries(app, account.id, { days: query.period, keyMode });
  },
});

const funnelRoute = route({
  ...{ method: 'GET', path: '/v1/clients/analytics/funnel', tag: analyticsTag, auth: 'account' },
  summary: 'Requested, accepted, delivered, verified: how many were left at each step.',
  about: analyticsAbout,
  query: periodQuery(),
  data: object({
    ...frame,
    steps: list(
      object({
        step: oneOf('requested', 'accepted', 'delivered', 'verified'),
        count: count('How many came so far.'),
        dropped: integer().description('How many were lost since the step before.'),
        rate: share('Of the first step'),
        step_rate: share('Of the step before'),
      }),
    ),
  }),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return funnel(app, account.id, { days: query.period, keyMode });
  },
});

const channelsRoute = route({
  ...{ method: 'GET', path: '/v1/clients/analytics/channels', tag: analyticsTag, auth: 'account' },
  summary: 'How each channel did, and how fast.',
  about: analyticsAbout,
  query: periodQuery(),
  data: object({
    ...frame,
    channels: list(
      object({
        channel: channelName(),
        ...totals,
        ...latencies(),
      }),
    ),
  }),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return channels(app, account.id, { days: query.period, keyMode });
  },
});

export const reportRoutes = [
  ...[analyticsRoute, timeseriesRoute, funnelRoute, channelsRoute],
  ...[recent, otps, otpsExport, timelineRoute],
];
