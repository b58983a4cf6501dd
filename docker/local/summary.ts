// What a running stack tells about itself: stack.json for programs, a page of text for people.
import type { Engines } from './engines.ts';

/** What the seed made. */
export type Demo = {
  account: { email: string; password: string };
  keys: { live: string; test: string };
};

export type Stack = Demo & {
  api: string;
  /** Null while nothing answers on OPS_PORT. */
  ops: string | null;
  sim: string;
  ops_token: string | null;
  engines: { mysql: string; redis: string; amqp: string };
  /** Null for an engine that is the user's own. */
  pids: Record<string, number | null>;
};

const listed = [
  ...['api', 'whatsapp', 'telegram', 'webhook', 'billing', 'analytics', 'ops', 'sim'],
  ...['mysql', 'redis', 'rabbitmq'],
];

/** The content of stack.json. */
export const describeStack = (given: {
  demo: Demo;
  api: string;
  sim: string;
  ops: { url: string; token: string } | undefined;
  engines: Engines;
  pids: Record<string, number>;
}): Stack => {
  const { demo, api, sim, ops, engines, pids } = given;
  const { epmd: _hidden, ...shown } = pids;
  return {
    ...{ api, ops: ops?.url ?? null, sim, ops_token: ops?.token ?? null },
    account: demo.account,
    keys: demo.keys,
    engines: { mysql: engines.mysql, redis: engines.redis, amqp: engines.amqp },
    pids: { ...Object.fromEntries(listed.map((name) => [name, null])), ...shown },
  };
};

const phone = '+14155550123';

const row = (title: string, text: string): string => `  ${title.padEnd(18)}${text}`;

const curlPost = (url: string, key: string, body: unknown): string =>
  [
    `  curl -s ${url} \\`,
    `    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify(body)}'`,
  ].join('\n');

/** The page printed when the stack is ready. */
export const printStack = (stack: Stack, told: { folder: string; seconds: string }): string =>
  [
    '',
    `Tessera is up after ${told.seconds} s.`,
    '',
    row('Public API', `${stack.api}   (described at ${stack.api}/openapi.json)`),
    row('Documentation', `${stack.api}/docs`),
    row('Simulated phones', stack.sim),
    row('Webhook receiver', `${stack.sim}/receiver   (the demo account's events arrive here)`),
    ...(stack.ops ? [row('Ops console', `${stack.ops}/ops   (token: ${stack.ops_token})`)] : []),
    row('Demo account', `${stack.account.email}   password: ${stack.account.password}`),
    row('Live key', `${stack.keys.live}   (reaches the simulated phones)`),
    row('Test key', `${stack.keys.test}   (sandbox; the code is 123456)`),
    row('Logs, data', told.folder),
    row('For programs', `${told.folder}/stack.json`),
    '',
    'Send a code:',
    '',
    curlPost(`${stack.api}/v1/otp/send`, stack.keys.live, { phone }),
    '',
    'Read it on the phone, then verify it (put the code in):',
    '',
    `  curl -s ${stack.sim}/phones/${phone}/messages`,
    '',
    curlPost(`${stack.api}/v1/otp/verify`, stack.keys.live, { phone, code: 'CODE' }),
    '',
    'Processes that die are started again by themselves. Ctrl-C ends everything.',
    '',
  ].join('\n');
