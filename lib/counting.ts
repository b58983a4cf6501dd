// Counting around the rooms: each is wrapped where a process is put together, and knows nothing of it.
import type { Poster } from './billing/post.ts';
import type { ChannelResult } from './channels/channel.ts';
import type { TelegramChannel } from './channels/telegram.ts';
import type { WhatsappChannel } from './channels/whatsapp.ts';
import type { Idempotency } from './idempotency/store.ts';
import type { Outbound } from './infra/outbound.ts';
import type { SettledJob } from './infra/queue/consumer.ts';
import type { OutboundResult } from './kernel/outbound.ts';
import type { Tracing } from './kernel/tracing.ts';
import type { Announcer } from './messages/announce.ts';
import type { LiveStore } from './otp/store.ts';
import type { Metrics } from './pulse/metrics.ts';
import type { PumpingStore } from './pumping/store.ts';
import type { AttemptStore } from './totp/attempt-store.ts';

const outcomeOfEvent: Record<string, string | undefined> = {
  'otp.sent': 'accepted',
  'otp.delivered': 'delivered',
  'otp.verified': 'verified',
  'otp.failed': 'failed',
  'otp.expired': 'expired',
};

/** Counts what becomes of messages by the events that say so; an event that comes twice counts twice. */
export const countSends = (metrics: Metrics, announcer: Announcer): Announcer => ({
  ...announcer,
  announce: async (event, urgency) => {
    await announcer.announce(event, urgency);
    const outcome = outcomeOfEvent[event.type];
    if (outcome === undefined) return;
    metrics.sends.add(String(event.data.channel ?? 'none'), outcome, event.mode);
  },
});

/** Counts codes that are checked: verified, wrong, blocked, none (there is no code to check against). */
export const countVerifies = (metrics: Metrics, live: LiveStore): LiveStore => ({
  ...live,
  verify: async (...args) => {
    const verdict = await live.verify(...args);
    metrics.verifies.add('otp', verdict.kind);
    return verdict;
  },
});

/** Counts attempts to verify by TOTP: verified, wrong_code, used_code, blocked. */
export const countTotp = (metrics: Metrics, attempts: AttemptStore): AttemptStore => ({
  ...attempts,
  record: async (attempt) => {
    const entry = await attempts.record(attempt);
    metrics.verifies.add('totp', entry.reason ?? entry.status);
    return entry;
  },
});

const conflict = 'conflict';

/** Counts what requests with an Idempotency-Key came upon. */
export const countIdempotency = (metrics: Metrics, idempotency: Idempotency): Idempotency => ({
  ...idempotency,
  begin: async (request) => {
    const beginning = await idempotency.begin(request);
    metrics.idempotency.add(beginning.kind === 'in_progress' ? conflict : beginning.kind);
    return beginning;
  },
});

/** Counts prefixes that are put on hold. */
export const countHolds = (metrics: Metrics, evidence: PumpingStore): PumpingStore => ({
  ...evidence,
  hold: async (...args) => {
    const held = await evidence.hold(...args);
    if (held) metrics.pumping.add('held');
    return held;
  },
});

/** Counts postings that changed a balance. */
export const countPostings = (metrics: Metrics, poster: Poster): Poster => ({
  ...poster,
  post: async (posting) => {
    const posted = await poster.post(posting);
    if (posted.posted === 'posted') metrics.postings.add(posting.kind);
    return posted;
  },
});

const outcomeOfCall = (result: ChannelResult): string =>
  result.kind === 'refused' ? result.refusal : result.kind;

/** What watches calls to providers. */
type Watch = { metrics: Metrics; tracing: Tracing };

const timed = async (
  { metrics, tracing }: Watch,
  provider: string,
  call: () => Promise<ChannelResult>,
): Promise<ChannelResult> => {
  if (!tracing.on) return counted(metrics, provider, call);
  const name = `${provider} send`;
  return tracing.span({ kind: 'client', name, attributes: { provider } }, async (span) => {
    const result = await counted(metrics, provider, call);
    const outcome = outcomeOfCall(result);
    span.set({ 'tessera.outcome': outcome });
    if (outcome !== 'accepted') span.fail(outcome);
    return result;
  });
};

/** Times a call to a provider; one that throws is a mistake of ours. */
const counted = async (
  metrics: Metrics,
  provider: string,
  call: () => Promise<ChannelResult>,
): Promise<ChannelResult> => {
  const startedAt = performance.now();
  let outcome = 'bug';
  try {
    const result = await call();
    outcome = outcomeOfCall(result);
    return result;
  } finally {
    metrics.providers.observe(performance.now() - startedAt, provider, outcome);
  }
};

export const timeWhatsapp = (watch: Watch, { send }: WhatsappChannel): WhatsappChannel => ({
  send: (message) => timed(watch, 'whatsapp', () => send(message)),
});

export const timeTelegram = (watch: Watch, telegram: TelegramChannel): TelegramChannel => {
  const timing =
    <A extends unknown[]>(call: (...args: A) => Promise<ChannelResult>) =>
    (...args: A) =>
      timed(watch, 'telegram', () => call(...args));
  return {
    sendCode: timing(telegram.sendCode),
    say: timing(telegram.say),
    askForContact: timing(telegram.askForContact),
    closeKeyboard: timing(telegram.closeKeyboard),
  };
};

const resultOf = (result: OutboundResult): string =>
  result.kind === 'answer' ? `${Math.trunc(result.status / 100)}xx` : result.reason;

/** Times attempts to deliver webhooks. */
export const timeWebhooks = (metrics: Metrics, outbound: Outbound): Outbound => ({
  ...outbound,
  post: (call) =>
    outbound.post(call).then((result) => {
      metrics.webhooks.observe(result.durationMs, resultOf(result));
      return result;
    }),
});

/** Takes note of a job that was settled; a wait is that of the first attempt. */
export const countJob = (
  metrics: Metrics,
  { job, outcome, meta, ms, waitedMs }: SettledJob,
): void => {
  metrics.jobs.observe(ms, job, outcome);
  if (meta.attempt === 1 && meta.firstPublishedAtMs > 0) {
    metrics.waits.observe(Math.max(0, waitedMs), job);
  }
};
