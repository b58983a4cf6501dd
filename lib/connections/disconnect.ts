// Disconnecting an own number: its token is deleted, and sends go back to the shared number.
import { describeError } from '../kernel/redact.ts';
import { accountEvent } from '../messages/events.ts';
import { tell } from '../messages/tell.ts';
import { type ConnectionDeps, tokenContext } from './provider.ts';
import type { FoundConnection } from './store.ts';

/**
 * Our app leaves a business account that it came to by Embedded Signup and that nobody uses here any more. Whether
 * that works changes nothing: without a connection the account's webhooks are passed over.
 */
const leave = async (deps: ConnectionDeps, connection: FoundConnection): Promise<void> => {
  const { wabaId, source, id, sealedToken } = connection;
  if (wabaId === null || source !== 'embedded_signup') return;
  try {
    if ((await deps.connections.ofBusiness(wabaId)).length > 0) return;
    await deps.management.unsubscribe(deps.sealer.open(sealedToken, tokenContext(id)), wabaId);
  } catch (error) {
    deps.log.info({ reason: describeError(error) }, 'whatsapp account not unsubscribed');
  }
};

/** What follows once a connection is gone from the store, by itself or for another one; never throws. */
export const partWith = async (
  deps: ConnectionDeps,
  connection: FoundConnection,
  requestId: string,
): Promise<void> => {
  const { accountId, id: subject, phoneNumberId, wabaId } = connection;
  await leave(deps, connection);
  await tell(
    deps,
    accountEvent('whatsapp.disconnected', {
      ...{ accountId, mode: 'live', at: deps.clock.now(), requestId, subject },
      data: { phone_number_id: phoneNumberId, waba_id: wabaId },
    }),
  );
};

/**
 * Deletes the account's connection. Repeatable: without one nothing happens, but processes are told again, in case
 * an earlier call did not come to it.
 */
export const disconnect = async (
  deps: ConnectionDeps,
  { accountId, requestId }: { accountId: string; requestId: string },
): Promise<void> => {
  const removed = await deps.connections.remove(accountId);
  await deps.revocations.announce();
  if (removed) await partWith(deps, removed, requestId);
};
