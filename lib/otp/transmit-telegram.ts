// The Telegram half of a send: the fallback, for recipients who linked a chat.
import type { ChannelResult } from '../channels/channel.ts';
import type { TelegramChannel } from '../channels/telegram.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import { rungFor } from '../infra/queue/settlement.ts';
import { type SendJob, telegramSend } from '../jobs.ts';
import { second } from '../kernel/clock.ts';
import type { NamedKey, Sealer } from '../kernel/secrets.ts';
import { codeLifeSeconds, isUnknown } from '../messages/rules.ts';
import type { Pauses } from '../sender/pauses.ts';
import type { SenderTally } from '../sender/tally.ts';
import { acceptSurely, awaitLeg } from './certainty.ts';
import {
  type Delivery,
  type DeliveryDeps,
  giveUp,
  moveOn,
  recordAccepted,
  recordFailed,
  recordGivenUp,
} from './delivery.ts';
import { claimLeg } from './legs.ts';
import type { LiveMessage } from './live-message.ts';
import { codeMacs, lateMs } from './rules.ts';
import { isSandboxLinked, sandboxResult } from './sandbox.ts';
import { openJob } from './sealed.ts';
import type { ClaimDetails } from './store.ts';

export type TelegramDeps = DeliveryDeps & {
  telegram: TelegramChannel;
  /** How long one call to Telegram may take. */
  telegramCallMs: number;
  pauses: Pick<Pauses, 'isPaused'>;
  tally: Pick<SenderTally, 'note'>;
  sealer: Sealer;
  peppers: readonly NamedKey[];
};

type Refused = Extract<ChannelResult, { kind: 'refused' }>;

const done: JobOutcome = { kind: 'done' };

/** What a caller who waits for Telegram is told to wait at least. */
const unavailableSeconds = 30;

/** What a call takes when all is well. */
const callRoomMs = second;

/** The chat of the sandbox's linked recipients; nothing is ever sent to it. */
const sandboxChat = 0;

const chatOf = async (
  deps: TelegramDeps,
  { message, ref }: Delivery,
): Promise<number | undefined> => {
  if (message.mode === 'live') return deps.links.chatOf(message, ref.recipient);
  return isSandboxLinked(message.phone) ? sandboxChat : undefined;
};

const unavailable = async (
  deps: TelegramDeps,
  delivery: Delivery,
  retryAfterSeconds = unavailableSeconds,
): Promise<JobOutcome> => {
  const reason = 'telegram_unavailable';
  await deps.live.settleLeg('telegram', delivery.ref, 'failed', reason);
  await moveOn(deps, delivery, { channel: 'telegram', reason, retryAfterSeconds });
  return done;
};

/** Nobody knows whether the chat has the message: it is not sent again, and its code may be used. */
const unknown = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const reason = 'telegram_outcome_unknown';
  await deps.live.settleLeg('telegram', delivery.ref, 'failed', reason);
  await moveOn(deps, delivery, { channel: 'telegram', reason });
  return done;
};

/** The chat is gone or has blocked the bot: it is not linked any more, and everything goes on as if it never was. */
const notLinked = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const { message, ref } = delivery;
  await deps.live.settleLeg('telegram', ref, 'failed', 'not_on_channel');
  if (message.mode === 'live') await deps.links.unlink(message, ref.recipient);
  await moveOn(deps, delivery, { channel: 'telegram', reason: 'not_on_channel' });
  return done;
};

/** An earlier run failed here and did not get to say so: it was for the reason it had. */
const failAgain = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const reason = (await deps.live.find(delivery.ref))?.lostTelegram;
  if (isUnknown(reason ?? null)) return unknown(deps, delivery);
  return reason === 'not_on_channel' ? notLinked(deps, delivery) : unavailable(deps, delivery);
};

/** Milliseconds in which a later attempt still helps: the caller's patience, or what is left of the code's life. */
const patienceMs = (deps: TelegramDeps, delivery: Delivery, meta: Meta): number => {
  const now = deps.clock.now();
  if (!delivery.late) return (meta.deadlineMs ?? now) - now;
  return meta.firstPublishedAtMs + lateMs - now;
};

const onRefused = async (
  deps: TelegramDeps,
  delivery: Delivery,
  refused: Refused,
  meta: Meta,
): Promise<JobOutcome> => {
  const { refusal, code, retryAfterSeconds } = refused;
  deps.log.info(
    { message_id: delivery.message.id, refusal, provider_code: code },
    'telegram refused',
  );
  if (refusal === 'unreachable') return notLinked(deps, delivery);
  const passing = refusal === 'retry' || refusal === 'throttle';
  const waitSeconds = retryAfterSeconds ?? 1;
  const rung = rungFor(telegramSend.retrySeconds, waitSeconds);
  // What is waited for in the end is a rung of the ladder, never less than Telegram asks for, and then the call.
  const inTime =
    rung >= waitSeconds && rung * second + callRoomMs < patienceMs(deps, delivery, meta);
  if (passing && !meta.lastAttempt && inTime) {
    await deps.live.settleLeg('telegram', delivery.ref, 'queued');
    return { kind: 'retry', reason: `telegram_${code}`, afterSeconds: waitSeconds };
  }
  return unavailable(deps, delivery, retryAfterSeconds);
};

const onAccepted = async (
  deps: TelegramDeps,
  delivery: Delivery,
  claimed: ClaimDetails,
): Promise<JobOutcome> => {
  const leg = { channel: 'telegram', hold: false, claimed } as const;
  const accepted = await acceptSurely(deps, delivery.ref, leg);
  if (accepted) await recordAccepted(deps, delivery, { channel: 'telegram', ...accepted });
  return done;
};

const resume = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const live = await deps.live.find(delivery.ref);
  const { acceptedAt, expiresAt } = live?.facts ?? {};
  if (live?.telegram !== 'accepted' || !acceptedAt || !expiresAt) return done;
  const channel = 'telegram';
  await recordAccepted(deps, delivery, { channel, acceptedAt, expiresAt, hold: false });
  return done;
};

/** Another run is in its call, or died there: there is no echo to ask, so its answer is waited for. */
const onSending = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const forMs = deps.telegramCallMs + second;
  const state = await awaitLeg(deps, delivery.ref, { channel: 'telegram', forMs });
  return state === 'accepted' ? resume(deps, delivery) : unknown(deps, delivery);
};

/** Whether the job has been in somebody's hands before. */
const isAgain = ({ redelivered, firstFailedAt }: Meta): boolean =>
  redelivered || firstFailedAt !== undefined;

const isTouched = (live: LiveMessage | undefined): boolean =>
  live?.telegram !== undefined && live.telegram !== 'queued';

/**
 * Where the message stands when its job is taken up. `over`: nobody can use the code any more, since the caller has
 * left, its life has ended or a newer one has replaced it. `taken`: Telegram has it, which may still have to be said,
 * whatever became of the link.
 */
const standing = async (
  deps: TelegramDeps,
  delivery: Delivery,
  meta: Meta,
): Promise<'over' | 'taken' | 'open'> => {
  const now = deps.clock.now();
  const { deadlineMs, late, ref } = delivery;
  if (deadlineMs !== undefined && deadlineMs <= now && (await giveUp(deps, delivery)))
    return 'over';
  if (!late && !isAgain(meta)) return 'open';
  // MySQL may be away for longer than Redis keeps a message: what is known of it stays as long as its job.
  const { live, replaced } = await deps.live.findAndKeep(ref);
  if (live?.telegram === 'accepted') return 'taken';
  if (!late || isTouched(live)) return 'open';
  // Nobody could use the code any more, or a newer one is right: what the first channel could not do stays undone.
  if (live && (replaced || (live.facts.expiresAt ?? now + 1) <= now)) {
    const reason = delivery.reason ?? 'not_delivered';
    await recordFailed(deps, delivery, { reason, voidCode: false });
    return 'over';
  }
  // A job that comes again long after (from its dead queue, say) would win its claim and send an old code.
  if (!replaced && now < meta.firstPublishedAtMs + codeLifeSeconds * second) return 'open';
  await recordGivenUp(deps, delivery);
  return 'over';
};

const send = async (deps: TelegramDeps, delivery: Delivery, chatId: number, code: string) => {
  if (delivery.message.mode === 'test') return sandboxResult(delivery.message.phone, 'telegram');
  const startedAt = performance.now();
  const result = await deps.telegram.sendCode(chatId, code, codeLifeSeconds / 60);
  deps.tally.note('telegram', result, performance.now() - startedAt);
  return result;
};

/** Not called, and certainly not sent. */
const notNow: Refused = { kind: 'refused', refusal: 'retry', code: 0 };

/** Operators have paused the channel: who waits is told at once, what nobody waits for waits itself. */
const onPaused = (deps: TelegramDeps, delivery: Delivery, meta: Meta): Promise<JobOutcome> =>
  delivery.late ? onRefused(deps, delivery, notNow, meta) : unavailable(deps, delivery);

/** Handles the job telegram.send. Errors it throws (Redis, MySQL or broker away) take the retry ladder. */
export const handleTelegramSend = async (
  deps: TelegramDeps,
  job: SendJob,
  meta: Meta,
): Promise<JobOutcome> => {
  const { delivery, sealed } = openJob(deps, 'telegram', job, meta);
  const { message, ref, sealedCode, waiter } = delivery;
  const stands = await standing(deps, delivery, meta);
  if (stands === 'over') return done;
  if (stands === 'taken') return resume(deps, delivery);
  const chatId = await chatOf(deps, delivery);
  if (chatId === undefined) {
    await moveOn(deps, delivery, {
      channel: 'telegram',
      reason: delivery.reason ?? 'not_on_channel',
    });
    return done;
  }
  const code = sealed.open();
  const [mac] = codeMacs(deps.peppers, ref.recipient, code);
  if (!mac) throw new Error('no pepper');
  const details = { message, sealedCode, mac, waiter, reachable: false };
  const now = deps.clock.now();
  const claim = await deps.live.claim('telegram', ref, now, details);
  // Verified meanwhile: the run that was told yes may have died before it wrote that down.
  if (claim === 'accepted' || claim === 'verified') return resume(deps, delivery);
  if (claim === 'sending') return onSending(deps, delivery);
  if (claim === 'failed') return failAgain(deps, delivery);
  if (claim === 'abandoned') {
    await recordGivenUp(deps, delivery);
    return done;
  }
  if (claim !== 'won') return done;
  const claimed = { ...delivery, legs: claimLeg(delivery.legs, now) };
  if (message.mode === 'live' && deps.pauses.isPaused('telegram')) {
    return onPaused(deps, claimed, meta);
  }
  const result = await send(deps, claimed, chatId, code);
  if (result.kind === 'accepted') return onAccepted(deps, claimed, details);
  if (result.kind === 'unknown') return unknown(deps, claimed);
  return onRefused(deps, claimed, result, meta);
};
