// Health: whether the service can send, and how the channels are.
import type { ApiApp } from '../../lib/app.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { integer, nullable, object, oneOf, text } from '../../lib/kernel/schema.ts';
import { bearerOf } from '../../lib/keys/rules.ts';
import { nullableTimestamp } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'Health';

const check = () =>
  object({
    status: oneOf('ok', 'down'),
    latency_ms: nullable(integer().description('Milliseconds.')),
  });

const health = route({
  ...{ method: 'GET', path: '/health', tag, auth: 'none' },
  summary: 'Whether the service can send; 503 when it cannot.',
  data: object({
    status: oneOf('ok', 'degraded').description('degraded: sends work, something else does not.'),
    version: text(),
    checks: object({ redis: check(), mysql: check(), rabbitmq: check() }),
  }),
  handle: async (app) => {
    const { checks, canSend } = await app.health.check();
    if (!canSend) throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: 5 });
    const sound = Object.values(checks).every(({ status }) => status === 'ok');
    return {
      status: sound ? ('ok' as const) : ('degraded' as const),
      version: app.version,
      checks,
    };
  },
});

const state = () => ({
  status: oneOf('ok', 'degraded', 'paused', 'down'),
  since: nullableTimestamp(),
});

const channel = () => object(state());

const ownNumber = () =>
  object({ status: oneOf('ok', 'down'), since: nullableTimestamp() }).description(
    "The caller's own connected number; null without one, and for callers that name no account.",
  );

const whatsappChannel = () =>
  object({
    ...state(),
    connections: nullable(
      object({ connected: integer().min(0), broken: integer().min(0) }),
    ).description('How many own numbers of customers work and do not; null: not known now.'),
    own_number: nullable(ownNumber()),
  });

/** Health needs no credential and refuses none: one that names no account is as good as none. */
const accountOf = async (app: ApiApp, authorization: string): Promise<string | undefined> => {
  try {
    if (bearerOf(authorization).startsWith('sess_')) {
      return (await app.authenticateSession(authorization)).account.id;
    }
    return (await app.authenticate(authorization)).accountId;
  } catch {
    return undefined;
  }
};

const ownState = async (app: ApiApp, authorization: string | undefined) => {
  const accountId = authorization && (await accountOf(app, authorization));
  const found = accountId
    ? await app.connections.find(accountId).catch(() => undefined)
    : undefined;
  if (!found) return null;
  const { brokenAt } = found;
  return brokenAt === null
    ? { status: 'ok' as const, since: null }
    : { status: 'down' as const, since: new Date(brokenAt).toISOString() };
};

const channels = route({
  ...{ method: 'GET', path: '/health/channels', tag, auth: 'none' },
  summary: 'How the channels are; with a credential also how the own connected number is.',
  data: object({ whatsapp: whatsappChannel(), telegram: channel() }),
  handle: async (app, { header }) => {
    const [{ whatsapp, telegram }, own] = await Promise.all([
      app.health.channels(),
      ownState(app, header('authorization')),
    ]);
    return { whatsapp: { ...whatsapp, own_number: own }, telegram };
  },
});

export const healthRoutes = [health, channels];
