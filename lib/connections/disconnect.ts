// Disconnecting an own number: its token is deleted, and sends go back to the shared number.
import type { Act } from '../accounts/acts.ts';
import type { EventWire } from '../jobs.ts';
import { describeError } from '../kernel/redact.ts';
import { accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import { type ConnectionDeps, tokenContext } from './provider.ts';
import type { Connection } from './rules.ts';
import type { FoundConnection } from './store.ts';

const tokenOf = ({ sealer }: ConnectionDeps, { id, sealedToken }: FoundConnection): string =>
  sealer.open(sealedToken, tokenContext(id));

/**
 * Our app leaves a business account that it came to by Embedded Signup and that nobody uses here any more. Whether
 * that works changes nothing: without a connection the account's webhooks are passed over. Never throws.
 */
export const leave = async (deps: ConnectionDeps, connection: FoundConnection): Promise<void> => {
  const { wabaId, source } = connection;
  if (wabaId === null || source !== 'embedded_signup') return;
  try {
    if ((await deps.connections.ofBusiness(wabaId)).length > 0) return;
    await deps.management.unsubscribe(tokenOf(deps, connection), wabaId);
    // Who came meanwhile had subscribed before we left.
    const [newcomer] = await deps.connections.ofBusiness(wabaId);
    if (newcomer) await deps.management.subscribe(tokenOf(deps, newcomer), wabaId);
  } catch (error) {
    deps.log.info({ reason: describeError(error) }, 'whatsapp account not unsubscribed');
  }
};

/** The event that a connection is gone, by itself or for another one. */
export const disconnectedEvent = (
  { accountId, id: subject, phoneNumberId, wabaId }: Connection,
  { at, requestId }: { at: number; requestId: string },
): EventWire =>
  accountEvent('whatsapp.disconnected', {
    ...{ accountId, mode: 'live', at, requestId, subject },
    data: { phone_number_id: phoneNumberId, waba_id: wabaId },
  });

/**
 * Deletes the account's connection. Repeatable: without one nothing happens, but processes are told again, in case
 * an earlier call did not come to it.
 * @throws KEY_MANAGEMENT_DISABLED, INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const disconnect = async (
  deps: ConnectionDeps,
  { accountId, requestId, act }: { accountId: string; requestId: string; act: Act },
): Promise<void> => {
  const now = deps.clock.now();
  const newsOf = (gone: FoundConnection | undefined): EventWire[] =>
    gone ? [disconnectedEvent(gone, { at: now, requestId })] : [];
  const { former, told } = await deps.connections.remove(accountId, { act, now, newsOf });
  await deps.revocations.announce(accountId);
  await tellNews(deps, told);
  if (former) await leave(deps, former);
};
