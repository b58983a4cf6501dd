// Connecting an own number: everything is checked with the provider first, and stored in one step at the end.
import { randomInt } from 'node:crypto';
import type { Act } from '../accounts/acts.ts';
import type { EventWire } from '../jobs.ts';
import { invalid } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import { disconnectedEvent, leave } from './disconnect.ts';
import { asking, type ConnectionDeps, pinContext, tokenContext } from './provider.ts';
import {
  type Connection,
  isLost,
  isTokenText,
  needsRegistration,
  qualityOf,
  templateStatusOf,
} from './rules.ts';
import type { FoundConnection } from './store.ts';

/** What both ways to connect say about the number. */
type Given = {
  accountId: string;
  requestId: string;
  act: Act;
  phoneNumberId: string;
  wabaId: string | null;
  displayName: string | null;
  source: Connection['source'];
  token: string;
  /** The field of the request that the token came with. */
  tokenField: string;
};

const elsewhere = () =>
  invalid({ field: 'phone_number_id', issue: 'is connected to another account' });

const checkFree = async (deps: ConnectionDeps, given: Given): Promise<void> => {
  const holder = await deps.connections.holder(given.phoneNumberId);
  if (holder !== undefined && holder !== given.accountId) throw elsewhere();
};

/** Only reads: the token, the number, the account and whether they belong together. */
const inspect = async ({ management, template }: ConnectionDeps, given: Given) => {
  const { token, phoneNumberId, wabaId } = given;
  const number = await management.readNumber(token, phoneNumberId);
  if (isLost(number.status)) {
    throw invalid({ field: 'phone_number_id', issue: 'is banned or deleted by WhatsApp' });
  }
  if (wabaId === null) return { number, templates: [] };
  await management.readAccount(token, wabaId);
  if (!(await management.holdsNumber(token, wabaId, phoneNumberId))) {
    throw invalid({ field: 'phone_number_id', issue: 'does not belong to waba_id' });
  }
  const templates = await management.listTemplates(token, wabaId, template.name);
  return { number, templates };
};

const newPin = (): string => String(randomInt(0, 1_000_000)).padStart(6, '0');

/**
 * Registers a number that is not registered yet. The PIN is kept before it is used: a repeat after a lost answer must
 * come with the same one.
 */
const register = async (deps: ConnectionDeps, given: Given): Promise<void> => {
  const { connections, management, sealer, clock } = deps;
  const context = pinContext(given.phoneNumberId);
  const sealed = sealer.seal(newPin(), context);
  const kept = await connections.keepPin(given.phoneNumberId, sealed, clock.now());
  await management.register(given.token, given.phoneNumberId, sealer.open(kept, context));
};

/** Both of these can be repeated: a call that fails later leaves nothing that a second one stumbles over. */
const prepare = async (deps: ConnectionDeps, given: Given, status: string): Promise<void> => {
  if (needsRegistration(status)) await register(deps, given);
  if (given.wabaId !== null) await deps.management.subscribe(given.token, given.wabaId);
};

/** The same number with another token is one number all along. */
const partsWith = (
  former: FoundConnection | undefined,
  { phoneNumberId }: Connection,
): former is FoundConnection => former !== undefined && former.phoneNumberId !== phoneNumberId;

/** What the account is told once `connection` stands in the place of `former`. */
const newsOf = (
  connection: Connection,
  former: FoundConnection | undefined,
  requestId: string,
): EventWire[] => {
  const { accountId, id: subject, phoneNumberId, wabaId, connectedAt: at } = connection;
  const connected = accountEvent('whatsapp.connected', {
    ...{ accountId, mode: 'live', at, requestId, subject },
    data: { phone_number_id: phoneNumberId, waba_id: wabaId },
  });
  return partsWith(former, connection)
    ? [disconnectedEvent(former, { at, requestId }), connected]
    : [connected];
};

const establish = async (deps: ConnectionDeps, given: Given): Promise<void> => {
  const { token, tokenField, ...about } = given;
  const { number, templates } = await asking(deps, tokenField, () => inspect(deps, given));
  await checkFree(deps, given);
  await asking(deps, tokenField, () => prepare(deps, given, number.status));
  const now = deps.clock.now();
  const connection: Connection = {
    id: newId(),
    accountId: about.accountId,
    phoneNumberId: about.phoneNumberId,
    wabaId: about.wabaId,
    source: about.source,
    displayName: about.displayName ?? number.verifiedName,
    displayPhoneNumber: number.displayPhoneNumber,
    qualityRating: qualityOf(number.qualityRating),
    status: 'connected',
    brokenAt: null,
    brokenReason: null,
    connectedAt: now,
    templates: templates.map((one) => ({ ...one, status: templateStatusOf(one.status) })),
  };
  const sealed = deps.sealer.seal(token, tokenContext(connection.id));
  const replaced = await deps.connections.replace(connection, {
    sealedToken: sealed,
    act: given.act,
    now,
    newsOf: (former) => newsOf(connection, former, given.requestId),
  });
  if (replaced.kind === 'taken') throw elsewhere();
  // The number is connected by now: whatever fails from here on, the caller is told that it is.
  await deps.revocations.announce(about.accountId);
  await tellNews(deps, replaced.told);
  if (partsWith(replaced.former, connection)) await leave(deps, replaced.former);
};

/**
 * Connects a number with a token of the customer's own. The number takes the place of one connected before.
 * @throws VALIDATION_ERROR naming what the provider does not accept, SERVICE_UNAVAILABLE; KEY_MANAGEMENT_DISABLED,
 * INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const connectWithToken = (
  deps: ConnectionDeps,
  given: Omit<Given, 'source' | 'tokenField'>,
): Promise<void> => {
  if (!isTokenText(given.token)) {
    throw invalid({ field: 'access_token', issue: 'cannot be an access token' });
  }
  return establish(deps, { ...given, source: 'manual', tokenField: 'access_token' });
};

/**
 * Connects a number with the code of Embedded Signup. The code is good for once, so a repeat needs a new one; what
 * this call did before it failed does not stand in its way.
 * @throws VALIDATION_ERROR naming what the provider does not accept, SERVICE_UNAVAILABLE; KEY_MANAGEMENT_DISABLED,
 * INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const connectBySignup = async (
  deps: ConnectionDeps,
  { code, ...given }: Omit<Given, 'source' | 'tokenField' | 'token'> & { code: string },
): Promise<void> => {
  const token = await asking(deps, 'code', () => deps.management.exchangeCode(code));
  await establish(deps, { ...given, token, source: 'embedded_signup', tokenField: 'code' });
};
