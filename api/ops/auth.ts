// Who may pass: the bearer of the token, or a browser that gave it at the login; everybody else gets a 401.
import type { Context as KoaContext, Middleware, Next } from 'koa';
import type { Clock } from '../../lib/kernel/clock.ts';
import { ServiceError } from '../../lib/kernel/errors.ts';
import type { Log } from '../../lib/kernel/log.ts';
import { equalInConstantTime } from '../../lib/kernel/secrets.ts';
import type { LogoutStore } from '../../lib/ops/logout-store.ts';
import type { Bodies } from '../bodies.ts';
import type { Context } from '../envelope.ts';
import type { Trust } from '../intake.ts';
import { sourceOf } from '../source.ts';
import { cookieNameOf } from './cookies.ts';
import { loginPage } from './login-page.ts';
import { csrfOf, type OpsSession, readSession } from './session.ts';
import { askedPage } from './way-back.ts';

const cookieName = 'tessera_ops';
export const loginPath = '/ops/login';

/** Somebody who passed; `csrf` is what the forms of a browser must carry, undefined for a bearer. */
export type OpsCaller = { actor: string; csrf: string | undefined };

const actorPattern = /^[\p{L}\p{M}\p{N}_ .@+-]{1,60}$/u;

/** A name as people wrote it, when it can stand in the audit log. */
export const readActor = (name: unknown): string | undefined =>
  typeof name === 'string' && actorPattern.test(name.trim()) ? name.trim() : undefined;

export type AuthDeps = {
  token: string;
  clock: Clock;
  log: Log;
  logouts: LogoutStore;
  bodies: Bodies;
  trust: Trust;
};

/** Name of the cookie that holds the session of this request's browser. */
export const sessionCookieOf = (ctx: KoaContext): string => cookieNameOf(cookieName, ctx.secure);

const byBearer = ({ token }: AuthDeps, ctx: KoaContext): OpsCaller | undefined => {
  const [, given = ''] = /^Bearer (\S+)$/i.exec(ctx.get('Authorization')) ?? [];
  if (!equalInConstantTime(given, token)) return undefined;
  return { actor: readActor(ctx.get('X-Ops-Actor')) ?? 'token', csrf: undefined };
};

/** The session of a browser that has not logged out, with the cookie that holds it. */
export const openSessionOf = async (
  { token, clock, logouts }: AuthDeps,
  ctx: KoaContext,
): Promise<{ session: OpsSession; cookie: string } | undefined> => {
  const cookie = ctx.cookies.get(sessionCookieOf(ctx));
  if (cookie === undefined) return undefined;
  const session = readSession(token, cookie, { now: clock.now(), equal: equalInConstantTime });
  if (session === undefined || (await logouts.isEnded(cookie))) return undefined;
  return { session, cookie };
};

const byCookie = async (deps: AuthDeps, ctx: KoaContext): Promise<OpsCaller | undefined> => {
  const open = await openSessionOf(deps, ctx);
  return open && { actor: open.session.actor, csrf: csrfOf(deps.token, open.cookie) };
};

const isForm = (ctx: KoaContext): boolean => Boolean(ctx.is('urlencoded'));

const wantsPage = (ctx: KoaContext): boolean =>
  (ctx.method === 'GET' || isForm(ctx)) && ctx.accepts('json', 'html') === 'html';

const maxFormBytes = 64 * 1024;

/** The fields of a form of somebody who passed; read once, whoever asks. @throws PAYLOAD_TOO_LARGE */
export const readForm = async (ctx: KoaContext, bodies: Bodies): Promise<URLSearchParams> => {
  const sending = { limit: maxFormBytes, trusted: true, source: () => sourceOf(ctx.ip) };
  ctx.state.form ??= isForm(ctx)
    ? await bodies.read(ctx.req, sending, (body) => new URLSearchParams(body.toString('utf8')))
    : new URLSearchParams();
  return ctx.state.form as URLSearchParams;
};

/** A login that was refused: what is wrong, and what had been written. */
export type Refused = { problem: string; actor: string; to: string };

/** 401: people get the form, programs the envelope. */
export const answerUnauthorized = (ctx: Context, refused?: Refused): void => {
  const koa = ctx as unknown as KoaContext;
  ctx.status = 401;
  ctx.set('WWW-Authenticate', 'Bearer');
  if (refused !== undefined || wantsPage(koa)) {
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = loginPage({ action: loginPath, ...(refused ?? { to: askedPage(koa) }) });
    return;
  }
  ctx.type = 'application/json';
  const message = 'The token of the ops listener is missing or not correct.';
  ctx.body = JSON.stringify({
    error: { code: 'INVALID_TOKEN', message, request_id: ctx.state.requestId },
  });
};

/** A write from a browser must prove that it comes from our own page. @throws REAUTH_REQUIRED */
const requireOwnPage = async (ctx: KoaContext, bodies: Bodies, csrf: string): Promise<void> => {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return;
  const origin = ctx.get('Origin');
  const foreign = origin !== '' && URL.parse(origin)?.host !== ctx.host;
  const word = isForm(ctx) ? (await readForm(ctx, bodies)).get('csrf') : ctx.get('X-CSRF-Token');
  const knows = equalInConstantTime(word ?? '', csrf);
  if (knows && !foreign) return;
  const message = knows
    ? `The browser is at ${origin}, the listener was asked as ${ctx.host}: a proxy in front must pass Host on, or X-Forwarded-Host with TRUSTED_PROXIES set.`
    : 'This write does not come from the console. Reload the page.';
  throw new ServiceError('REAUTH_REQUIRED', {}, { message });
};

/** The log line of an operator's credential that was not correct. */
export const noteRefused = ({ log }: AuthDeps, ctx: KoaContext, by: 'form' | 'bearer'): void => {
  log.warn({ source: ctx.ip, by, request_id: ctx.state.requestId }, 'operator refused');
};

/** The outermost layer behind the log: nothing is looked up, not even a path, for who does not pass. */
export const requireOps =
  (deps: AuthDeps): Middleware =>
  async (ctx: KoaContext, next: Next) => {
    if (ctx.path === loginPath && ctx.method === 'POST') return next();
    const caller = byBearer(deps, ctx) ?? (await byCookie(deps, ctx));
    if (!caller) {
      // A call without any credential is a browser that has not logged in yet.
      if (ctx.get('Authorization') !== '') noteRefused(deps, ctx, 'bearer');
      return answerUnauthorized(ctx as unknown as Context);
    }
    deps.trust(ctx.req.socket);
    if (caller.csrf !== undefined) await requireOwnPage(ctx, deps.bodies, caller.csrf);
    ctx.state.caller = caller;
    return next();
  };
