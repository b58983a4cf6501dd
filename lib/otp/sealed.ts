// A send job opened: the message, who waits for it, and its code, which is unsealed only where it is sent.
import type { Meta } from '../infra/queue/message.ts';
import type { SendJob } from '../jobs.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import type { Sealer } from '../kernel/secrets.ts';
import type { ChannelName, FailureReason } from '../messages/rules.ts';
import { fromWire } from '../messages/wire.ts';
import type { Delivery } from './delivery.ts';
import { openLeg } from './legs.ts';

export type SealedCode = { open(): string };

const purpose = 'otp-code';

/** Seals a code for the jobs of message `id`: brokers keep messages on disk. */
export const sealCode = (sealer: Sealer, id: string, code: string): string =>
  sealer.seal(code, { purpose, record: id });

export const openJob = (
  deps: { recipients: RecipientKeys; sealer: Sealer },
  channel: ChannelName,
  job: SendJob,
  meta: Meta,
): { delivery: Delivery; sealed: SealedCode } => {
  const message = fromWire(job.message);
  const { accountId, mode, phone, id } = message;
  const { replyTo, correlationId, attempt, firstPublishedAtMs: queuedAt } = meta;
  return {
    delivery: {
      message,
      ref: { recipient: deps.recipients.ofRecipient(accountId, mode, phone), id },
      sealedCode: job.sealed_code,
      tried: job.tried,
      reason: job.reason as FailureReason | null,
      reachable: job.reachable,
      late: job.late,
      own: job.own ?? false,
      legs: openLeg(job.legs ?? [], { channel, queuedAt, attempt }),
      waiter: replyTo && correlationId ? { replyTo, correlationId } : undefined,
      deadlineMs: meta.deadlineMs,
    },
    sealed: { open: () => deps.sealer.open(job.sealed_code, { purpose, record: id }) },
  };
};
