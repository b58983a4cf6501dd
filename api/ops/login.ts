// Logging in from a browser, and out again.
import type { Context as KoaContext, Middleware, Next } from 'koa';
import { equalInConstantTime } from '../../lib/kernel/secrets.ts';
import type { Context } from '../envelope.ts';
import { sourceOf } from '../source.ts';
import {
  type AuthDeps,
  answerUnauthorized,
  loginPath,
  noteRefused,
  openSessionOf,
  readActor,
  sessionCookieOf,
} from './auth.ts';
import { makeSession, sessionMs } from './session.ts';
import { homePath, pageOrHome } from './way-back.ts';

export const logoutPath = '/ops/logout';

const maxFormBytes = 4_096;

const logIn = async (deps: AuthDeps, ctx: KoaContext): Promise<void> => {
  const { token, clock, log, bodies } = deps;
  const sending = { limit: maxFormBytes, trusted: false, source: () => sourceOf(ctx.ip) };
  const text = await bodies.read(ctx.req, sending, (body) => body.toString('utf8'));
  const form = new URLSearchParams(text);
  const actor = readActor(form.get('actor'));
  const known = equalInConstantTime(form.get('token') ?? '', token);
  if (!known) noteRefused(deps, ctx, 'form');
  if (!known || actor === undefined) {
    const problem = known
      ? 'Your name may have letters, digits and . @ + - in it, 60 at most.'
      : 'This token is not correct.';
    const written = (form.get('actor') ?? '').slice(0, 60);
    const refused = { problem, actor: written, to: pageOrHome(form.get('to')) };
    answerUnauthorized(ctx as unknown as Context, refused);
    return;
  }
  log.info({ actor, source: ctx.ip, request_id: ctx.state.requestId }, 'operator logged in');
  ctx.cookies.set(sessionCookieOf(ctx), makeSession(token, actor, clock.now()), {
    ...{ httpOnly: true, sameSite: 'strict', path: '/', overwrite: true, maxAge: sessionMs },
    // Over plain HTTP, which loopback is, a browser would not keep a Secure cookie. Behind a proxy the proxy says.
    secure: ctx.secure,
  });
  ctx.redirect(pageOrHome(form.get('to')));
  ctx.status = 303;
};

/** The session ends here and not in the browser alone: a copy of its cookie opens nothing any more. */
const logOut = async (deps: AuthDeps, ctx: KoaContext): Promise<void> => {
  const open = await openSessionOf(deps, ctx);
  if (open) {
    await deps.logouts.end(open.cookie, open.session.until);
    const { actor } = open.session;
    deps.log.info({ actor, request_id: ctx.state.requestId }, 'operator logged out');
  }
  ctx.cookies.set(sessionCookieOf(ctx), null, { path: '/', secure: ctx.secure });
  // What the browser has kept of the console goes with it; where it came over plain HTTP, browsers pass this over.
  ctx.set('Clear-Site-Data', '"cache", "storage"');
  ctx.redirect(homePath);
  ctx.status = 303;
};

/** POST /ops/login and POST /ops/logout. */
export const login =
  (deps: AuthDeps): Middleware =>
  async (ctx: KoaContext, next: Next) => {
    if (ctx.method !== 'POST') return next();
    if (ctx.path === loginPath) return logIn(deps, ctx);
    return ctx.path === logoutPath ? logOut(deps, ctx) : next();
  };
