// Getting in: registering, logging in and out, passwords (spec section 4, "Account").

import { plainLine } from '../../lib/kernel/plain-text.ts';
import { flag, integer, object, optional, text } from '../../lib/kernel/schema.ts';
import { requireLastingKey, requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { logIn } from '../../lib/security/login.ts';
import { changePassword } from '../../lib/security/password.ts';
import { requireProof } from '../../lib/sessions/authenticate.ts';
import { endSession, type Opened, refreshSession } from '../../lib/sessions/open.ts';
import { revealFirstKeys, signUp } from '../../lib/signup/register.ts';
import { accountData, accountView } from '../account-fields.ts';
import { actOf, changesOf } from '../acting.ts';
import { refuseUnknownToken } from '../caller.ts';
import { email, password, phoneInput, resetCode } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'Account';

const turnstileToken = () =>
  optional(text().max(4096).description('Token of the bot check, where it is configured.'));

/** Needed only after TURNSTILE_REQUIRED. */
const laterTurnstileToken = () =>
  optional(
    text()
      .max(4096)
      .description('Token of the bot check; needed after TURNSTILE_REQUIRED, else not looked at.'),
  );

const openedFields = {
  session_token: text().description('Bearer of the calls of a session: sess_…'),
  refresh_token: text().description('Bearer of session/refresh, good once: rt_…'),
  expires_in: integer().min(0).description('Seconds the session token lives.').example(900),
  account: accountData(),
};

/** What opening or refreshing a session answers. */
export const openedData = () => object(openedFields);

export const openedView = ({ tokens, expiresInSeconds, account }: Opened) => ({
  session_token: tokens.access,
  refresh_token: tokens.refresh,
  expires_in: expiresInSeconds,
  account: accountView(account),
});

const registerRoute = route({
  ...{ method: 'POST', path: '/v1/clients/register', tag, auth: 'none' },
  summary: 'Makes an account with a first live and a first test key.',
  errors: ['INVALID_PHONE', 'EMAIL_TAKEN', 'RATE_LIMIT_EXCEEDED'],
  body: object({
    email: email(),
    password: password(),
    name: plainLine().min(1).max(100).description('Name of the owner.'),
    phone: phoneInput(),
    company: optional(plainLine().max(120).allow('').description('Company.')),
    turnstile_token: turnstileToken(),
    locale: optional(
      plainLine()
        .max(8)
        .allow('')
        .description(
          'Language of the owner, kept as it is; what is not en or ar is treated as en.',
        ),
    ),
  }),
  data: object({ account: accountData() }),
  handle: async (app, { body, visitor }) => {
    const { ip, source } = visitor();
    const account = await signUp(app, {
      ...{ email: body.email, password: body.password, name: body.name, phone: body.phone },
      ...{ company: body.company || null, locale: body.locale || 'en' },
      ...{ turnstileToken: body.turnstile_token, ip, source },
    });
    return { account: accountView(account) };
  },
});

const signupSecretRoute = route({
  ...{ method: 'POST', path: '/v1/clients/signup-secret', tag, auth: 'account' },
  summary: 'Shows the first live and test key, once.',
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  data: object({ keys: object({ live: text(), test: text() }) }),
  handle: async (app, request) => {
    const { account, session, keyMode, keyEnds } = request;
    requireLiveRights(keyMode);
    requireLastingKey(keyEnds);
    requireProof(session, app.clock.now());
    await takeRead(app.reads, 'key_change', changesOf(request));
    return { keys: await revealFirstKeys(app, account.id, actOf(request)) };
  },
});

const loginRoute = route({
  ...{ method: 'POST', path: '/v1/clients/login', tag, auth: 'none' },
  lobby: ({ passwords }) => passwords.logins,
  summary: 'Opens a session, or asks for the second factor.',
  errors: ['INVALID_CREDENTIALS', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED', 'TURNSTILE_REQUIRED'],
  body: object({
    email: email(),
    password: password(),
    turnstile_token: laterTurnstileToken(),
  }),
  data: object({
    session_token: optional(openedFields.session_token),
    refresh_token: optional(openedFields.refresh_token),
    account: optional(accountData()),
    mfa_required: optional(flag().description('True when a second factor is asked for.')),
    mfa_token: optional(text().description('Bearer of security/login/mfa: mfa_…')),
    expires_in: openedFields.expires_in,
  }),
  handle: async (app, { body, visitor }) => {
    const { email: address, password: given, turnstile_token: turnstileToken } = body;
    const login = await logIn(app, {
      email: address,
      password: given,
      turnstileToken,
      visitor: visitor(),
    });
    if (login.kind === 'open') return openedView(login.opened);
    const { mfaToken, expiresInSeconds } = login.challenge;
    return { mfa_required: true, mfa_token: mfaToken, expires_in: expiresInSeconds };
  },
});

const logoutRoute = route({
  ...{ method: 'POST', path: '/v1/clients/logout', tag, auth: 'session' },
  summary: 'Ends the session that makes the call.',
  data: object({ logged_out: flag() }),
  handle: async (app, { session }) => {
    await endSession(app, session);
    return { logged_out: true };
  },
});

const refreshRoute = route({
  ...{ method: 'POST', path: '/v1/clients/session/refresh', tag, auth: 'refresh' },
  summary: 'A new pair of tokens for a refresh token, which is used up.',
  data: openedData(),
  handle: async (app, { token, visitor }) => {
    const refused = refuseUnknownToken(app, visitor().source);
    return openedView(await refreshSession(app, token).catch(refused));
  },
});

const passwordRoute = route({
  ...{ method: 'POST', path: '/v1/clients/password', tag, auth: 'account' },
  summary: 'Changes the password; other sessions end.',
  errors: ['INVALID_CREDENTIALS', 'RATE_LIMIT_EXCEEDED'],
  body: object({
    current_password: text().min(1).max(128).description('The present password.'),
    new_password: password(),
  }),
  data: object({ changed: flag() }),
  handle: async (app, request) => {
    const { account, session, body, visitor } = request;
    const { source } = visitor();
    const act = actOf(request);
    const { current_password: current, new_password: wanted } = body;
    await changePassword(app, { account, session, current, wanted, source, act });
    return { changed: true };
  },
});

const forgotRoute = route({
  ...{ method: 'POST', path: '/v1/clients/password/forgot', tag, auth: 'none' },
  summary: 'Sends a code to the phone of the account, if there is one with this address.',
  errors: ['RATE_LIMIT_EXCEEDED', 'TURNSTILE_REQUIRED'],
  body: object({ email: email(), turnstile_token: laterTurnstileToken() }),
  data: object({ sent: flag().description('Always true: who has which address is not told.') }),
  handle: async (app, { body, visitor, requestId }) => {
    const { ip, source } = visitor();
    const from = { ip, source, turnstileToken: body.turnstile_token };
    await app.recovery.forgot({ email: body.email, visitor: from, requestId });
    return { sent: true };
  },
});

const resetRoute = route({
  ...{ method: 'POST', path: '/v1/clients/password/reset', tag, auth: 'none' },
  summary: 'Sets a new password with the code that was sent; all sessions end.',
  errors: ['INVALID_CODE', 'RATE_LIMIT_EXCEEDED', 'TURNSTILE_REQUIRED'],
  body: object({
    email: email(),
    code: resetCode(),
    new_password: password(),
    turnstile_token: laterTurnstileToken(),
  }),
  data: object({ changed: flag() }),
  handle: async (app, { body, visitor }) => {
    const { email: address, code: given, new_password: wanted } = body;
    const { ip, source } = visitor();
    const from = { ip, source, turnstileToken: body.turnstile_token };
    await app.recovery.reset({ email: address, code: given, password: wanted, visitor: from });
    return { changed: true };
  },
});

export const accessRoutes = [
  registerRoute,
  loginRoute,
  logoutRoute,
  refreshRoute,
  signupSecretRoute,
  passwordRoute,
  forgotRoute,
  resetRoute,
];
