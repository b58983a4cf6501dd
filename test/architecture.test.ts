// The shape of the house: rooms stand in a row and import only from their left, rules are pure, stores hold the SQL.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import test from 'ava';

const root = join(import.meta.dirname, '..');

/** The whole architecture: a part may import from those before it. `lib/stores.ts`, `lib/house.ts` and `lib/app.ts` join what stands in the row. */
const row = [
  'lib/kernel',
  'lib/jobs.ts',
  'lib/infra',
  'lib/pulse',
  'lib/channels',
  'lib/messages',
  'lib/accounts',
  'lib/limits',
  'lib/keys',
  'lib/platform',
  'lib/sessions',
  'lib/connections',
  'lib/signup',
  'lib/security',
  'lib/pumping',
  'lib/idempotency',
  'lib/billing',
  'lib/sender',
  'lib/links',
  'lib/otp',
  'lib/recovery',
  'lib/playground',
  'lib/totp',
  'lib/reports',
  'lib/retention',
  'lib/capacity',
  'lib/webhooks',
  'lib/doctor',
  'lib/counting.ts',
  'lib/ops',
  'lib/health.ts',
  'lib/stores.ts',
  'lib/house.ts',
  'lib/app.ts',
  'lib/ops-app.ts',
];
const doors = ['api', 'workers'];

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file));

const partOf = (file: string): string =>
  [...row, ...doors, 'migrations'].find((part) => file === part || file.startsWith(`${part}/`)) ??
  file;

type Import = { from: string; to: string };

const importsOf = (file: string): Import[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/from '(\.{1,2}\/[^']+)'/g)].map((match) => ({
    from: file,
    to: normalize(relative(root, join(root, dirname(file), match[1] ?? ''))),
  }));

const all = ['lib', 'api', 'workers', 'migrations'].flatMap(sources);
const imports = all.flatMap(importsOf);

test('every file of lib stands in the row', (t) => {
  t.deepEqual(
    all.filter((file) => file.startsWith('lib/') && !row.includes(partOf(file))),
    [],
  );
});

test('a room imports only from its left', (t) => {
  const wrong = imports.filter(({ from, to }) => {
    const [left, right] = [row.indexOf(partOf(to)), row.indexOf(partOf(from))];
    return right !== -1 && (left === -1 || left > right);
  });
  t.deepEqual(wrong, []);
});

test('the doors do not know each other, and migrations know no room', (t) => {
  const wrong = imports.filter(({ from, to }) => {
    const [here, there] = [partOf(from), partOf(to)];
    if (here === 'migrations') return !['migrations', 'lib/infra', 'lib/kernel'].includes(there);
    return doors.includes(here) && doors.includes(there) && here !== there;
  });
  t.deepEqual(wrong, []);
});

test('rules are pure: nothing asynchronous, no clock, no socket', (t) => {
  for (const file of all.filter((name) => name.endsWith('/rules.ts'))) {
    const text = readFileSync(join(root, file), 'utf8');
    t.notRegex(text, /\basync\b|\bawait\b|Date\.now\(\)|new Date\(\)/, file);
    t.notRegex(text, /from '[^']*infra\//, file);
  }
});

test('SQL stands in stores and migrations alone', (t) => {
  const allowed =
    /^(migrations\/|lib\/infra\/(mysql|newest)\.ts|lib\/health\.ts)|\/(([a-z]+-)?store|history|reservations)\.ts$/;
  const users = all.filter((file) =>
    /\bdb\.raw\(|\bdb[<(]/.test(readFileSync(join(root, file), 'utf8')),
  );
  t.deepEqual(
    users.filter((file) => !allowed.test(file)),
    [],
  );
});

test('tracing is loaded only when it is wanted', (t) => {
  t.deepEqual(
    imports.filter(({ to }) => to === 'lib/pulse/otel.ts'),
    [],
  );
  t.regex(readFileSync(join(root, 'lib/pulse/trace.ts'), 'utf8'), /await import\('\.\/otel\.ts'\)/);
});

test('packages that open sockets are imported in one place each', (t) => {
  const homes: Record<string, RegExp> = {
    amqplib: /^lib\/infra\/queue\//,
    ioredis: /^lib\/infra\/redis(-address)?\.ts$/,
    undici: /^lib\/infra\/(exchange|http|outbound|safe-connect)\.ts$/,
    knex: /^(lib\/infra\/mysql\.ts$|migrations\/)/,
    mysql2: /^lib\/infra\/mysql\.ts$/,
    koa: /^api\//,
    '@opentelemetry/exporter-trace-otlp-http': /^lib\/pulse\/otel\.ts$/,
    '@opentelemetry/sdk-trace-node': /^lib\/pulse\/otel\.ts$/,
  };
  for (const file of all) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const [name, home] of Object.entries(homes)) {
      if (text.includes(`from '${name}'`)) t.regex(file, home, `${file} imports ${name}`);
    }
  }
  t.pass();
});
