// Former addresses: the event of a change goes to the address that was replaced by it, too, under the secrets of then.
import type { FormerAddressStore, FormerEvent } from '../accounts/former-store.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Attempt } from './attempt.ts';
import type { Delivery } from './delivery.ts';
import type { Endpoint } from './endpoint-store.ts';
import { render } from './render.ts';

type Deps = {
  formerAddresses: FormerAddressStore;
  deliverer: { attempt: Attempt };
  clock: Clock;
  log: Log;
};

const everyMs = second;
const leaseMs = minute;
const atOnce = 10;
/** Waits before the second attempt and those after it; then the address has had its chance. */
const waitsMs: readonly number[] = [10 * second, minute, 10 * minute];

const endpointOf = ({ accountId, address }: FormerEvent): Endpoint => ({
  accountId,
  url: address.url,
  disabled: false,
  changedAt: 0,
  failingSince: null,
  pausedUntil: null,
  secrets: address.secrets,
});

const deliveryOf = ({ id, accountId, event, attempts }: FormerEvent): Delivery | undefined => {
  const [rendered] = render(event);
  return (
    rendered && {
      id,
      accountId,
      eventId: rendered.eventId,
      type: rendered.type,
      mode: event.mode,
      body: rendered.body,
      status: 'pending',
      attempts,
      tries: attempts,
      createdAt: event.at,
      releasedAt: null,
      deliveredAt: null,
      nextAttemptAt: null,
      runningUntil: null,
      // It says nothing of how the account's present address fares.
      manual: true,
    }
  );
};

/** One attempt. One that could not be made, since no key opens the secrets of then, counts like one that failed. */
const attempt = async ({ deliverer }: Deps, delivery: Delivery, former: FormerEvent) => {
  try {
    const { recorded, giveUp } = await deliverer.attempt(delivery, endpointOf(former));
    return { status: recorded.to.status, reason: recorded.attempt.reason, giveUp };
  } catch (error) {
    return { status: 'pending', reason: describeError(error), giveUp: undefined } as const;
  }
};

const deliver = async (deps: Deps, former: FormerEvent): Promise<void> => {
  const { formerAddresses, clock, log } = deps;
  const delivery = deliveryOf(former);
  if (!delivery) return formerAddresses.drop(former.id);
  const { status, reason, giveUp } = await attempt(deps, delivery, former);
  const waitMs = waitsMs[former.attempts];
  // An address that says it is gone, or that must not be called, is not asked again.
  const ended = status !== 'pending' || giveUp !== undefined || waitMs === undefined;
  const fields = { account_id: former.accountId, type: former.event.type };
  if (status === 'delivered') log.info(fields, 'former webhook address told');
  else if (ended) log.warn({ ...fields, reason }, 'former address not told');
  if (ended) return formerAddresses.drop(former.id);
  await formerAddresses.again(former.id, clock.now() + waitMs);
};

/** Delivers what is due to former addresses. An attempt that does not end comes again when its lease is over. */
export const tellFormerAddresses = async (deps: Deps): Promise<void> => {
  for (;;) {
    const now = deps.clock.now();
    const due = await deps.formerAddresses.take(now, { until: now + leaseMs, limit: atOnce });
    await Promise.allSettled(due.map((former) => deliver(deps, former)));
    if (due.length < atOnce) return;
  }
};

/** The chore of it. */
export const createFormerTeller = (deps: Deps): Chore =>
  repeat(() => tellFormerAddresses(deps), everyMs, deps.log);
