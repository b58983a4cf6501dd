// Health: whether the service can send, and how the channels are.
import { fail } from '../../lib/kernel/errors.ts';
import { integer, nullable, object, oneOf, text } from '../../lib/kernel/schema.ts';
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

const channel = () =>
  object({ status: oneOf('ok', 'degraded', 'paused', 'down'), since: nullableTimestamp() });

const channels = route({
  ...{ method: 'GET', path: '/health/channels', tag, auth: 'none' },
  summary: 'How the channels are.',
  data: object({ whatsapp: channel(), telegram: channel() }),
  handle: (app) => app.health.channels(),
});

export const healthRoutes = [health, channels];
