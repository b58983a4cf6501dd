// Who makes a request, by the kind of credential its route takes.
import type { Account } from '../lib/accounts/rules.ts';
import type { ApiApp } from '../lib/app.ts';
import { type ErrorCode, fail, ServiceError } from '../lib/kernel/errors.ts';
import { bearerOf } from '../lib/keys/rules.ts';
import { rateLimitHeaders } from '../lib/limits/answers.ts';
import { takeRead } from '../lib/limits/reads.ts';
import type { ReadRowName } from '../lib/limits/table.ts';
import { tierOf } from '../lib/limits/tier.ts';
import type { Mode } from '../lib/messages/rules.ts';
import type { Context } from './envelope.ts';
import type { Auth, Callers, CsvRoute, JsonRoute } from './route.ts';
import { callerAddress, sourceKeyOf } from './source.ts';

const headerOf = (ctx: Context): string | undefined => ctx.get('Authorization') || undefined;

/** A call that names no account counts against its address: nothing is to be guessed here at leisure. */
const refuseStranger =
  (app: ApiApp, source: string, [code, row]: readonly [ErrorCode, ReadRowName]) =>
  async (error: unknown): Promise<never> => {
    if (error instanceof ServiceError && error.code === code) {
      await takeRead(app.reads, row, source);
    }
    throw error;
  };

const unknownKey = ['INVALID_API_KEY', 'source_send'] as const;
const unknownToken = ['INVALID_SESSION', 'source_token'] as const;

/** For calls that look a token up themselves: an unknown one counts against the address it came from. */
export const refuseUnknownToken = (app: ApiApp, source: string) =>
  refuseStranger(app, source, unknownToken);

// For the log line, and the headers every answer to an account carries.
const note = (app: ApiApp, ctx: Context, account: Account, mode: Mode | undefined) => {
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
    return refuseStranger(app, sourceKeyOf(callerAddress(ctx)), unknownKey)(error);
  });
  ctx.state.keyId = principal.keyId;
  return { principal, tier: note(app, ctx, principal.account, principal.mode) };
};

const bySession = async (
  app: ApiApp,
  ctx: Context,
  route: JsonRoute | CsvRoute,
): Promise<Callers['session']> => {
  // A route that may refuse for want of a proof sees one that another process took a moment ago.
  const needsProof = route.errors.includes('REAUTH_REQUIRED');
  const found = await app
    .authenticateSession(headerOf(ctx), { needsProof })
    .catch(refuseUnknownToken(app, sourceKeyOf(callerAddress(ctx))));
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
    const found = await bySession(app, ctx, route);
    return { ...found, keyMode: undefined, keyId: undefined, keyEnds: false };
  }
  const { principal } = await byKey(app, ctx, route);
  // What changes the account is every call here that does not read.
  if (route.method !== 'GET' && !principal.account.keysManageAccount) {
    throw fail('KEY_MANAGEMENT_DISABLED');
  }
  const { account, mode, keyId, ends = false } = principal;
  return { account, session: undefined, keyMode: mode, keyId, keyEnds: ends };
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
