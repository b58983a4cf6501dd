// The customer's own WhatsApp number (spec section 4, "business messaging connection").
import type { ApiApp } from '../../lib/app.ts';
import { connectBySignup, connectWithToken } from '../../lib/connections/connect.ts';
import { disconnect } from '../../lib/connections/disconnect.ts';
import { checkTemplate, createTemplate } from '../../lib/connections/template.ts';
import { type ErrorCode, fail } from '../../lib/kernel/errors.ts';
import { plainLine } from '../../lib/kernel/plain-text.ts';
import { flag, nullable, object, optional, text } from '../../lib/kernel/schema.ts';
import { requireLastingKey } from '../../lib/keys/rights.ts';
import { refusalExtras } from '../../lib/limits/answers.ts';
import { requireProof } from '../../lib/sessions/authenticate.ts';
import { actOf, changesOf } from '../acting.ts';
import {
  connectionData,
  connectionView,
  templateData,
  templateView,
} from '../connection-fields.ts';
import { type Callers, route } from '../route.ts';

const tag = 'Own WhatsApp number';

const providerId = (what: string) =>
  text()
    .pattern(/^\d{1,20}$/)
    .description(`Id of the ${what} at WhatsApp.`)
    .messages({ 'string.pattern.base': 'must be 1 to 20 digits' });

const phoneNumberId = () => providerId('number').example('106540352242922');
const wabaId = () => providerId('WhatsApp Business account').example('102290129340398');

const changeErrors: ErrorCode[] = ['REAUTH_REQUIRED', 'VALIDATION_ERROR'];
const templateErrors: ErrorCode[] = [...changeErrors, 'NOT_FOUND'];

/** Live sends depend on the connection, so a test key does not change it; all but leaving share one limit. */
const mayChange = async (
  app: ApiApp,
  { account, session, keyMode, keyEnds }: Callers['account'],
  row: 'connect' | 'disconnect' = 'connect',
): Promise<void> => {
  if (keyMode === 'test') {
    const message =
      'A test key cannot change the WhatsApp connection. Use a live key or a session.';
    throw fail('REAUTH_REQUIRED', {}, { message });
  }
  requireLastingKey(keyEnds);
  const taken = await app.reads.take(row, changesOf({ account, session }));
  if (!taken.admitted) throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(taken.refusal));
};

/** Another number in the place of the one that sends is a disconnect too, and needs its proof. */
const mayReplace = async (
  app: ApiApp,
  { account, session }: Callers['account'],
  next: string,
): Promise<void> => {
  const held = await app.connections.find(account.id);
  if (held && held.phoneNumberId !== next) requireProof(session, app.clock.now());
};

const connected = async (app: ApiApp, accountId: string) => {
  const found = await app.connections.find(accountId);
  if (!found) throw fail('NOT_FOUND', {}, { message: 'The number was disconnected meanwhile.' });
  return { connection: connectionView(found, app.template) };
};

const connect = route({
  ...{ method: 'POST', path: '/v1/clients/connect-whatsapp', tag, auth: 'account' },
  summary: 'Connects an own number with an access token, once WhatsApp has confirmed both.',
  errors: [...changeErrors, 'NOT_FOUND'],
  body: object({
    phone_number_id: phoneNumberId(),
    access_token: text()
      .min(1)
      .description(
        'Token that may send from the number and manage templates; issued for the Meta app of this service, or receipts do not reach it.',
      ),
    waba_id: optional(
      wabaId().description('Its WhatsApp Business account; templates need it to be looked after.'),
    ),
    display_name: optional(
      plainLine().max(512).description('What to call the number; otherwise its verified name.'),
    ),
  }),
  data: object({ connection: connectionData() }),
  handle: async (app, request) => {
    const { account, body, requestId } = request;
    await mayChange(app, request);
    await mayReplace(app, request, body.phone_number_id);
    await connectWithToken(app, {
      ...{ accountId: account.id, requestId, token: body.access_token },
      act: actOf(request),
      phoneNumberId: body.phone_number_id,
      wabaId: body.waba_id ?? null,
      displayName: body.display_name ?? null,
    });
    return connected(app, account.id);
  },
});

const signup = route({
  ...{ method: 'POST', path: '/v1/clients/waba/embedded-signup', tag, auth: 'account' },
  summary: 'Connects an own number with the code that Embedded Signup gave to the browser.',
  errors: [...changeErrors, 'NOT_FOUND'],
  body: object({
    code: text().min(1).max(2048).description('The code; WhatsApp lets it live 30 seconds.'),
    waba_id: wabaId(),
    phone_number_id: phoneNumberId(),
  }),
  data: object({ connection: connectionData() }),
  handle: async (app, request) => {
    const { account, body, requestId } = request;
    await mayChange(app, request);
    await mayReplace(app, request, body.phone_number_id);
    if (!app.config.whatsappAppId || !app.config.whatsappAppSecret) {
      const message = 'Embedded Signup is not set up here. Connect with an access token.';
      throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: 3600 }, { message });
    }
    await connectBySignup(app, {
      ...{ accountId: account.id, requestId, code: body.code, displayName: null },
      act: actOf(request),
      ...{ phoneNumberId: body.phone_number_id, wabaId: body.waba_id },
    });
    return connected(app, account.id);
  },
});

const details = route({
  ...{ method: 'GET', path: '/v1/clients/waba/details', tag, auth: 'account' },
  summary: 'The own number and its template; connection is null while there is none.',
  data: object({
    connection: nullable(connectionData()).description(
      'Null: no own number is connected, sends use the shared one.',
    ),
  }),
  handle: async (app, { account }) => {
    const taken = await app.reads.take('read', account.id);
    if (!taken.admitted) throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(taken.refusal));
    const found = await app.connections.find(account.id);
    return { connection: found ? connectionView(found, app.template) : null };
  },
});

const check = route({
  ...{ method: 'POST', path: '/v1/clients/waba/template/check', tag, auth: 'account' },
  summary: 'Asks WhatsApp for the state of the template now.',
  errors: templateErrors,
  data: object({ template: templateData() }),
  handle: async (app, request) => {
    await mayChange(app, request);
    const { account, requestId } = request;
    return {
      template: templateView(await checkTemplate(app, { accountId: account.id, requestId })),
    };
  },
});

const create = route({
  ...{ method: 'POST', path: '/v1/clients/waba/template/create', tag, auth: 'account' },
  summary: "Creates the template in the account's language, or adopts the one that exists.",
  errors: templateErrors,
  data: object({ template: templateData() }),
  handle: async (app, request) => {
    await mayChange(app, request);
    const { account, requestId } = request;
    return {
      template: templateView(await createTemplate(app, { accountId: account.id, requestId })),
    };
  },
});

const leave = route({
  ...{ method: 'POST', path: '/v1/clients/waba/disconnect', tag, auth: 'account' },
  summary: 'Disconnects the own number and deletes its token. Repeatable.',
  errors: ['REAUTH_REQUIRED'],
  data: object({ disconnected: flag().valid(true).description('Always true on success.') }),
  handle: async (app, request) => {
    const { account, session, requestId } = request;
    requireProof(session, app.clock.now());
    await mayChange(app, request, 'disconnect');
    await disconnect(app, { accountId: account.id, requestId, act: actOf(request) });
    return { disconnected: true };
  },
});

export const wabaRoutes = [connect, signup, details, check, create, leave];
