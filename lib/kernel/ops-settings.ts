// The settings of the ops listener, and of what it looks at.
import { integer, text } from './schema.ts';
import { secret, setting } from './setting.ts';

export const opsSettings = {
  opsHost: setting(
    'OPS_HOST',
    text().default('127.0.0.1'),
    'Address the ops listener listens on. It belongs on no public network.',
  ),
  opsPort: setting(
    'OPS_PORT',
    integer().min(0).max(65535).default(8081),
    'Port the ops listener listens on.',
  ),
  opsToken: secret(
    'OPS_TOKEN',
    text().min(16).max(200).allow('').default(''),
    'Token of the ops listener, at least 16 characters. Empty: it does not start.',
  ),
  brokerManagementUrl: secret(
    'RABBITMQ_MANAGEMENT_URL',
    text()
      .uri({ scheme: ['http', 'https'] })
      .allow('')
      .default(''),
    'Management API of RabbitMQ, for unacknowledged messages and rates: http://user:password@host:15672. Empty: the processes’ own counts are shown.',
  ),
};
