// Why an engine cannot be used, in plain words: nobody there, no such name, a login that is refused, no such database.
import { describeError } from '../kernel/redact.ts';
import { type Finding, findingsOf } from './rules.ts';

export type Away = {
  engine: 'MySQL' | 'Redis' | 'RabbitMQ';
  /** The setting with its address. */
  variable: 'MYSQL_URL' | 'REDIS_URL' | 'AMQP_URL';
  /** What the setting holds; only hosts and ports of it are repeated. */
  url: string;
};

const hostsOf = (url: string): string =>
  url
    .split(',')
    .filter((text) => text.trim() !== '')
    .map((text) => URL.parse(text.trim())?.host || 'an address that cannot be read')
    .join(', ');

type Cause = {
  /** Found in the error's code or text. */
  sign: RegExp;
  code: string;
  say(away: Away, hosts: string, problem: string): readonly [text: string, advice: string];
};

const causes: readonly Cause[] = [
  {
    // mysql2, RabbitMQ, and Redis without and with users.
    sign: /ER_ACCESS_DENIED_ERROR|ACCESS[_-]REFUSED|WRONGPASS|NOAUTH|invalid (username-)?password/i,
    code: 'engine.login',
    say: ({ engine, variable }, hosts) => [
      `${engine} at ${hosts} refuses the user or the password.`,
      `Correct them in ${variable}; signs such as @ and / must be written as %40 and %2F there.`,
    ],
  },
  {
    sign: /ER_BAD_DB_ERROR|ER_DBACCESS_DENIED_ERROR/,
    code: 'engine.no_database',
    say: ({ engine, variable }, hosts) => [
      `${engine} at ${hosts} has no database of the name in ${variable}, or keeps this user out of it.`,
      'Create it, give the user all rights on it, and run npm run migrate.',
    ],
  },
  {
    // RabbitMQ closes the connection instead of opening the virtual host.
    sign: /ConnectionOpenOk|NOT_ALLOWED/,
    code: 'engine.no_vhost',
    say: ({ engine, variable }, hosts) => [
      `${engine} at ${hosts} has no virtual host of the name in ${variable}, or keeps this user out of it.`,
      'Create it (rabbitmqctl add_vhost) and let the user in (rabbitmqctl set_permissions). The name stands behind the last slash; %2F is the one called /.',
    ],
  },
  {
    // mysql2 when TLS fails, and MySQL when it is asked without.
    sign: /HANDSHAKE_NO_SSL_SUPPORT|HANDSHAKE_SSL_ERROR|ER_SECURE_TRANSPORT_REQUIRED|ssl-ca file/,
    code: 'engine.tls',
    say: ({ engine, variable }, hosts, problem) => [
      `${engine} at ${hosts} and this service do not agree on TLS: ${problem}.`,
      `Correct ssl-mode and ssl-ca in ${variable}, or the certificate of the server.`,
    ],
  },
  {
    sign: /ECONNREFUSED/,
    code: 'engine.refused',
    say: ({ engine, variable }, hosts) => [
      `Nobody listens at ${hosts}, where ${engine} should be.`,
      `Start ${engine}, or set ${variable} to where it runs.`,
    ],
  },
  {
    sign: /ENOTFOUND|EAI_AGAIN/,
    code: 'engine.no_host',
    say: ({ engine, variable }, hosts) => [
      `${hosts}, where ${engine} should be, is a name nobody knows.`,
      `Correct the host in ${variable}, or see to DNS on this machine.`,
    ],
  },
  {
    sign: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|timed? ?out|not ready after/i,
    code: 'engine.silent',
    say: ({ engine, variable }, hosts) => [
      `${engine} at ${hosts} does not answer.`,
      `See whether a firewall is in the way, whether ${engine} hangs, and whether ${variable} is right.`,
    ],
  },
];

const signsOf = (problem: unknown): string => {
  const { code, message, cause } = (problem ?? {}) as Record<string, unknown>;
  return [code, message, cause === undefined ? '' : signsOf(cause)].map(String).join(' ');
};

/** What `problem`, met when connecting, means for whoever runs the engine. */
export const explainAway = (away: Away, problem: unknown): Finding => {
  const { error } = findingsOf('Engines');
  const signs = signsOf(problem);
  const cause = causes.find(({ sign }) => sign.test(signs));
  if (cause)
    return error(cause.code, ...cause.say(away, hostsOf(away.url), describeError(problem)));
  return error(
    'engine.away',
    `${away.engine} cannot be used: ${describeError(problem)}.`,
    `See whether it runs, and whether ${away.variable} has its address, user and password right.`,
  );
};
