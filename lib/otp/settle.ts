// Settling verified messages: the fact is recorded, then whoever waits is told; charging joins it with the ledger.
import type { Broker } from '../infra/queue/broker.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import type { EventWire } from '../jobs.ts';
import { type Facts, noFacts } from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import { fromWire } from '../messages/wire.ts';

export type SettleDeps = { messages: MessageStore; broker: Pick<Broker, 'reply'> };

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

const factsOf = ({ at, data }: EventWire): Facts => ({
  ...noFacts,
  channel: (data.channel as Facts['channel'] | undefined) ?? null,
  acceptedAt: numberOf(data.accepted_at),
  expiresAt: numberOf(data.expires_at),
  deliveredAt: numberOf(data.delivered_at),
  verifiedAt: at,
});

/** Handles the job billing.charge; doing it twice records and answers the same. */
export const handleVerified = async (
  deps: SettleDeps,
  job: { events: EventWire[] },
  meta: Meta,
): Promise<JobOutcome> => {
  await Promise.all(
    job.events.map(async (event) => {
      if (event.message) await deps.messages.merge(fromWire(event.message), factsOf(event));
    }),
  );
  for (const { waiter } of job.events) {
    if (waiter && meta.replyTo) {
      deps.broker.reply({ replyTo: meta.replyTo, correlationId: waiter }, { settled: true });
    }
  }
  return { kind: 'done' };
};
