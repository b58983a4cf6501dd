// Who makes a request, by the kind of credential its route takes.
import type { Account } from '../lib/accounts/rules.ts';
import type { ApiApp } from '../lib/app.ts';
import { fail, ServiceError } from '../lib/kernel/errors.ts';
import { bearerOf } from '../lib/keys/rules.ts';
import { rateLimitHeaders } from '../lib/limits/answers.ts';
import { takeRead } from '../lib/limits/reads.ts';
import { tierOf } from '../lib/limits/tier.ts';
import type { Context } from './envelope.ts';
import type { Auth, Callers, CsvRoute, JsonRoute } from './route.ts';
import { sourceKeyOf } from './source.ts';

const headerOf = (ctx: Context): string | undefined => ctx.get('Authorization') || undefined;

/** A call that names no account counts against its address: keys are not to be guessed here at leisure. */
const refuseStranger = async (app: ApiApp, ctx: Context, error: unknown): Promise<never> => {
  if (error instanceof ServiceError && error.code === 'INVALID_API_KEY') {
    await takeRead(app.reads, 'source_send', sourceKeyOf(ctx.ip));
  }
  throw error;
};

// For the log line, and the headers every answer to an account carries.
const note = (app: ApiApp, ctx: Context, account: Account, mode: string | undefined) => {
  const tier = tierOf(account, app.clock.now());
  ctx.state.accountId = account.id;
  ctx.state.mode = mode;
  ctx.set(rateLimitHeaders(tier, []));
  return tier;
};

const byKey = async (
  app: ApiApp,
  ctx: Context,
  route: JsonRoute | CsvRoute,
): Promise<Callers['key']> => {
  const principal = await app.authenticate(headerOf(ctx)).catch((error: unknown) => {
    if (!route.sends) throw error;
    return refuseStranger(app, ctx, error);
  });
  return { principal, tier: note(app, ctx, principal.account, principal.mode) };
};

const bySession = async (app: ApiApp, ctx: Context): Promise<Callers['session']> => {
  const found = await app.authenticateSession(headerOf(ctx));
  note(app, ctx, found.account, undefined);
  return found;
};

// An API key begins with sk_, whatever else does not is taken for a session.
const byEither = async (
  app: ApiApp,
  ctx: Context,
  route: JsonRoute | CsvRoute,
): Promise<Callers['account']> => {
  if (bearerOf(headerOf(ctx)).startsWith('sess_')) {
    return { ...(await bySession(app, ctx)), keyMode: undefined, keyId: undefined };
  }
  const { principal } = await byKey(app, ctx, route);
  const { account, mode, keyId } = principal;
  return { account, session: undefined, keyMode: mode, keyId };
};

type Find = (app: ApiApp, ctx: Context, route: JsonRoute | CsvRoute) => Promise<object>;

// Whether the token is a good one, the call itself finds out; another kind of credential ends here.
const byToken =
  (begin: string): Find =>
  (_, ctx) => {
    const token = bearerOf(headerOf(ctx));
    return token.startsWith(begin)
      ? Promise.resolve({ token })
      : Promise.reject(fail('INVALID_SESSION'));
  };

const finders: Record<Auth, Find> = {
  none: () => Promise.resolve({}),
  key: byKey,
  session: bySession,
  account: byEither,
  refresh: byToken('rt_'),
  mfa: byToken('mfa_'),
};

/** Finds the caller of a route. @throws the 401 errors of its kind of credential */
export const callerOf: Find = (app, ctx, route) => finders[route.auth](app, ctx, route);
