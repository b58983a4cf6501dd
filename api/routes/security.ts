// Account security: the second factor, re-authentication, sessions (spec section 4, "Account security").
import {
  type Act,
  actors,
  newEntry,
  type SecurityEntry,
  securityActions,
} from '../../lib/accounts/acts.ts';
import type { ApiApp } from '../../lib/app.ts';
import { cursorOf } from '../../lib/kernel/cursor.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { idTime } from '../../lib/kernel/ids.ts';
import {
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
} from '../../lib/kernel/schema.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { answerChallenge } from '../../lib/security/challenge.ts';
import {
  confirmFactor,
  disableFactor,
  enrollFactor,
  reauthenticate,
  renewRecoveryCodes,
} from '../../lib/security/factor.ts';
import { requireProof } from '../../lib/sessions/authenticate.ts';
import { proofLifeMs } from '../../lib/sessions/rules.ts';
import { actOf } from '../acting.ts';
import { refuseUnknownToken } from '../caller.ts';
import { idNamed, listQuery, nullableTimestamp, page, timestamp, uuid } from '../fields.ts';
import { type Callers, route } from '../route.ts';
import { openedData, openedView } from './access.ts';

const tag = 'Account security';

type SessionCall = Callers['session'] & { requestId: string; visitor(): { ip: string } };

/** Who makes a call that takes a session alone. */
const sessionAct = ({ session, requestId, visitor }: SessionCall): Act =>
  actOf({ session, keyId: undefined, requestId, visitor });

const logView = (entry: SecurityEntry) => ({
  id: entry.id,
  at: new Date(idTime(entry.id)).toISOString(),
  action: entry.action,
  by: entry.by,
  credential_id: entry.credentialId,
  ip: entry.ip,
  subject_id: entry.subjectId,
  changes: [...entry.changes],
  request_id: entry.requestId,
});

/** What changes the security of an account shares one limit. @throws RATE_LIMIT_EXCEEDED */
const takeChange = (app: ApiApp, { id }: { id: string }): Promise<void> =>
  takeRead(app.reads, 'security_change', id);

const factorCode = () =>
  text().min(6).max(32).description('Six digits of the authenticator app, or a recovery code.');

const codeBody = () => object({ code: factorCode() });

/** Exactly one of password and code (spec section 4). */
const proofBody = () =>
  object({
    password: optional(text().min(1).max(128).description('The password.')),
    code: optional(factorCode()),
  })
    .xor('password', 'code')
    .messages({
      'object.missing': 'must hold either password or code',
      'object.xor': 'must hold only one of password and code',
    }) as ReturnType<typeof proofObject>;

const proofObject = () => object({ password: optional(text()), code: optional(text()) });

const recoveryCodes = () =>
  list(text()).description('Ten codes, each good once instead of the app. Shown this once.');

const loginMfa = route({
  ...{ method: 'POST', path: '/v1/clients/security/login/mfa', tag, auth: 'mfa' },
  summary: 'Ends a login that waits for the second factor.',
  errors: ['INVALID_CODE', 'TOO_MANY_ATTEMPTS'],
  body: codeBody(),
  data: openedData(),
  handle: async (app, { token, body, visitor }) => {
    const refused = refuseUnknownToken(app, visitor().source);
    return openedView(await answerChallenge(app, { token, code: body.code }).catch(refused));
  },
});

const mfa = route({
  ...{ method: 'GET', path: '/v1/clients/security/mfa', tag, auth: 'session' },
  summary: 'Whether a second factor is set up.',
  data: object({
    enabled: flag(),
    confirmed_at: nullableTimestamp(),
    recovery_codes_remaining: integer().min(0).description('Below three is time for new ones.'),
  }),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    const { confirmedAt, left } = await app.factors.describe(account.id);
    return {
      enabled: confirmedAt !== null,
      confirmed_at: confirmedAt === null ? null : new Date(confirmedAt).toISOString(),
      recovery_codes_remaining: left,
    };
  },
});

const enroll = route({
  ...{ method: 'POST', path: '/v1/clients/security/mfa/enroll', tag, auth: 'session' },
  summary: 'A secret for an authenticator app; it counts once confirmed, within ten minutes.',
  errors: ['ALREADY_ENROLLED', 'REAUTH_REQUIRED'],
  data: object({ secret: text(), otpauth_url: text(), qr_code: text() }),
  handle: async (app, { account, session }) => {
    requireProof(session, app.clock.now());
    await takeChange(app, account);
    const { secret, url, qrCode } = await enrollFactor(app, account);
    return { secret, otpauth_url: url, qr_code: qrCode };
  },
});

const confirm = route({
  ...{ method: 'POST', path: '/v1/clients/security/mfa/confirm', tag, auth: 'session' },
  summary: 'Turns the second factor on with a code of the new secret.',
  errors: ['TOTP_NOT_ENROLLED', 'INVALID_CODE'],
  body: codeBody(),
  data: object({ recovery_codes: recoveryCodes() }),
  handle: async (app, request) => {
    const { account, session, body } = request;
    await takeChange(app, account);
    const actor = { account, session, act: sessionAct(request) };
    return { recovery_codes: await confirmFactor(app, actor, body.code) };
  },
});

const reauth = route({
  ...{ method: 'POST', path: '/v1/clients/security/reauth', tag, auth: 'session' },
  summary: 'Opens sensitive changes in this session for ten minutes.',
  errors: ['INVALID_CREDENTIALS', 'INVALID_CODE'],
  body: proofBody(),
  data: object({ reauthenticated: flag(), expires_in: integer().min(0) }),
  handle: async (app, { account, session, body }) => {
    await takeChange(app, account);
    await reauthenticate(app, { account, session }, body);
    return { reauthenticated: true, expires_in: proofLifeMs / 1000 };
  },
});

const disable = route({
  ...{ method: 'POST', path: '/v1/clients/security/mfa/disable', tag, auth: 'session' },
  summary: 'Turns the second factor off; the other sessions end.',
  errors: ['TOTP_NOT_ENROLLED', 'INVALID_CREDENTIALS', 'INVALID_CODE'],
  body: proofBody(),
  data: object({ disabled: flag() }),
  handle: async (app, request) => {
    const { account, session, body, requestId } = request;
    await takeChange(app, account);
    const actor = { account, session, act: sessionAct(request) };
    await disableFactor(app, actor, body, requestId);
    return { disabled: true };
  },
});

const recovery = route({
  ...{ method: 'POST', path: '/v1/clients/security/mfa/recovery', tag, auth: 'session' },
  summary: 'New recovery codes; the old ones are void.',
  errors: ['TOTP_NOT_ENROLLED', 'INVALID_CREDENTIALS', 'INVALID_CODE'],
  body: proofBody(),
  data: object({ recovery_codes: recoveryCodes() }),
  handle: async (app, request) => {
    const { account, session, body } = request;
    await takeChange(app, account);
    const actor = { account, session, act: sessionAct(request) };
    return { recovery_codes: await renewRecoveryCodes(app, actor, body) };
  },
});

const sessions = route({
  ...{ method: 'GET', path: '/v1/clients/security/sessions', tag, auth: 'session' },
  summary:
    'The open sessions of the account, newest first; for 30 days also those that a stolen token ended.',
  data: page(
    object({
      id: uuid(),
      created_at: timestamp(),
      last_used_at: timestamp(),
      ip: text(),
      user_agent: text().allow(''),
      current: flag().description('Whether it is the one that asks.'),
      mfa: flag().description('Whether a second factor was given.'),
      token_reused_at: nullableTimestamp().description(
        'When a refresh token of it came a second time, which ended it; null: it is open.',
      ),
    }),
  ),
  handle: async (app, { account, session: own }) => {
    await takeRead(app.reads, 'read', own.id);
    const found = await app.sessions.list(account.id, app.clock.now());
    const items = found.map(({ session, reusedAt }) => ({
      id: session.id,
      created_at: new Date(session.createdAt).toISOString(),
      last_used_at: new Date(session.lastUsedAt).toISOString(),
      ...{ ip: session.ip, user_agent: session.userAgent },
      ...{ current: session.id === own.id, mfa: session.mfa },
      token_reused_at: reusedAt === null ? null : new Date(reusedAt).toISOString(),
    }));
    return { items, next_before: null };
  },
});

const revoke = route({
  ...{ method: 'DELETE', path: '/v1/clients/security/sessions/{id}', tag, auth: 'session' },
  summary: 'Ends one session of the account.',
  errors: ['NOT_FOUND', 'REAUTH_REQUIRED'],
  params: object({ id: text().description('Id of a session.') }),
  data: object({ revoked: flag() }),
  handle: async (app, request) => {
    const { account, session, params } = request;
    const now = app.clock.now();
    requireProof(session, now);
    await takeRead(app.reads, 'session_end', session.id);
    const id = idNamed(params.id);
    const what = { action: 'sessions_ended', subjectId: id } as const;
    const entry = newEntry(account.id, sessionAct(request), what);
    const outcome = await app.sessions.revoke(account.id, id, now, { reason: 'revoked', entry });
    // Also of one that ended before: whoever ended it may not have come to tell the others.
    if (outcome !== 'missing') await app.revocations.announce(account.id);
    if (outcome !== 'ended') throw fail('NOT_FOUND');
    return { revoked: true };
  },
});

const revokeOthers = route({
  ...{ method: 'POST', path: '/v1/clients/security/sessions/revoke-others', tag, auth: 'session' },
  summary: 'Ends all sessions of the account but the one that makes the call.',
  errors: ['REAUTH_REQUIRED'],
  data: object({ revoked: integer().min(0).description('How many were ended.') }),
  handle: async (app, request) => {
    const { account, session } = request;
    const now = app.clock.now();
    requireProof(session, now);
    await takeRead(app.reads, 'session_end', session.id);
    const entry = newEntry(account.id, sessionAct(request), { action: 'sessions_ended' });
    const ended = { except: session.id, reason: 'revoked', entry };
    const revoked = await app.sessions.revokeAll(account.id, now, ended);
    await app.revocations.announce(account.id);
    return { revoked };
  },
});

const log = route({
  ...{ method: 'GET', path: '/v1/clients/security/log', tag, auth: 'session' },
  summary: 'What was done to the security of the account, newest first; kept for 180 days.',
  about:
    'By session alone. Each entry is written together with the change it tells of. What is an event, too, a live key finds among the webhook deliveries.',
  query: object(listQuery(100)),
  data: page(
    object({
      id: uuid(),
      at: timestamp(),
      action: oneOf(...securityActions).description('What was done.'),
      by: oneOf(...actors).description(
        'What it was done with. reset_code: a code for a forgotten password. operator: of the service.',
      ),
      credential_id: nullable(uuid()).description('Id of the session or key; null for the others.'),
      ip: nullable(text()).description('Address of the call; null: an operator.'),
      subject_id: nullable(uuid()).description('The key or session it was done to, if any.'),
      changes: list(
        object({
          setting: text(),
          from: nullable(text()).description('Null: nothing, or a secret.'),
          to: nullable(text()).description('Null: nothing, or a secret.'),
        }),
      ).description('Settings before and after; spend_cap_hourly in millionths of a USD.'),
      request_id: nullable(text()),
    }),
  ),
  handle: async (app, { account, session, query: { before, limit } }) => {
    await takeRead(app.reads, 'read', session.id);
    const found = await app.securityLog.list(account.id, { before, limit: limit + 1 });
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    return {
      items: shown.map(logView),
      next_before: found.length > limit && last ? cursorOf(last.id) : null,
    };
  },
});

export const securityRoutes = [
  ...[loginMfa, mfa, enroll, confirm, reauth, disable, recovery],
  ...[sessions, revoke, revokeOthers, log],
];
