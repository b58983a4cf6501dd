// The Telegram half of a send: the fallback, for recipients who linked a chat.
import type { ChannelResult } from '../channels/channel.ts';
import type { TelegramChannel } from '../channels/telegram.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import type { SendJob } from '../jobs.ts';
import { minute, second } from '../kernel/clock.ts';
import type { NamedKey, Sealer } from '../kernel/secrets.ts';
import { codeLifeSeconds } from '../messages/rules.ts';
import {
  type Delivery,
  type DeliveryDeps,
  moveOn,
  recordAccepted,
  recordFailed,
} from './delivery.ts';
import { claimLeg } from './legs.ts';
import { codeMacs } from './rules.ts';
import { isSandboxLinked, sandboxResult } from './sandbox.ts';
import { openJob } from './sealed.ts';

export type TelegramDeps = DeliveryDeps & {
  telegram: TelegramChannel;
  sealer: Sealer;
  peppers: readonly NamedKey[];
};

type Refused = Extract<ChannelResult, { kind: 'refused' }>;

const done: JobOutcome = { kind: 'done' };

/** What a caller who waits for Telegram is told to wait at least. */
const unavailableSeconds = 30;

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
  await deps.live.settleLeg('telegram', delivery.ref, 'failed');
  const reason = 'telegram_unavailable';
  await moveOn(deps, delivery, { channel: 'telegram', reason, retryAfterSeconds });
  return done;
};

/** The chat is gone or has blocked the bot: it is not linked any more, and everything goes on as if it never was. */
const notLinked = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const { message, ref } = delivery;
  await deps.live.settleLeg('telegram', ref, 'failed');
  if (message.mode === 'live') await deps.links.unlink(message, ref.recipient);
  await moveOn(deps, delivery, { channel: 'telegram', reason: 'not_on_channel' });
  return done;
};

/** Milliseconds in which a later attempt still helps: the caller's patience, or what is left of the code's life. */
const patienceMs = (deps: TelegramDeps, delivery: Delivery, meta: Meta): number => {
  const now = deps.clock.now();
  if (!delivery.late) return (meta.deadlineMs ?? now) - now;
  return meta.firstPublishedAtMs + codeLifeSeconds * second - minute - now;
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
  if (passing && !meta.lastAttempt && waitSeconds * second < patienceMs(deps, delivery, meta)) {
    await deps.live.settleLeg('telegram', delivery.ref, 'queued');
    return { kind: 'retry', reason: `telegram_${code}`, afterSeconds: waitSeconds };
  }
  return unavailable(deps, delivery, retryAfterSeconds);
};

const onAccepted = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const accepted = await deps.live.accept('telegram', delivery.ref, deps.clock.now(), false);
  if (accepted) await recordAccepted(deps, delivery, { channel: 'telegram', ...accepted });
  return done;
};

const resume = async (deps: TelegramDeps, delivery: Delivery): Promise<JobOutcome> => {
  const { acceptedAt, expiresAt } = (await deps.live.find(delivery.ref))?.facts ?? {};
  if (!acceptedAt || !expiresAt) return done;
  const channel = 'telegram';
  await recordAccepted(deps, delivery, { channel, acceptedAt, expiresAt, hold: false });
  return done;
};

const send = async (deps: TelegramDeps, delivery: Delivery, chatId: number, code: string) =>
  delivery.message.mode === 'test'
    ? sandboxResult(delivery.message.phone, 'telegram')
    : deps.telegram.sendCode(chatId, code, codeLifeSeconds / 60);

/** Handles the job telegram.send. Errors it throws (Redis, MySQL or broker away) take the retry ladder. */
export const handleTelegramSend = async (
  deps: TelegramDeps,
  job: SendJob,
  meta: Meta,
): Promise<JobOutcome> => {
  const { delivery, sealed } = openJob(deps, 'telegram', job, meta);
  const { message, ref, sealedCode, waiter } = delivery;
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
  if (claim === 'accepted') return resume(deps, delivery);
  // Called by a run that did not live to hear the answer: there is no echo to ask, and no second call.
  if (claim === 'sending' || claim === 'failed') return unavailable(deps, delivery);
  if (claim === 'abandoned') {
    await recordFailed(deps, delivery, { reason: 'deadline', voidCode: true });
    return done;
  }
  if (claim !== 'won') return done;
  const claimed = { ...delivery, legs: claimLeg(delivery.legs, now) };
  const result = await send(deps, claimed, chatId, code);
  if (result.kind === 'accepted') return onAccepted(deps, claimed);
  if (result.kind === 'unknown') return unavailable(deps, claimed);
  return onRefused(deps, claimed, result, meta);
};
