// MySQL on a server that is set against us: what a statement means, and how the connection is protected.
import test from 'ava';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { isOutage } from '../../lib/infra/outages.ts';
import { idText, newId } from '../../lib/kernel/ids.ts';
import { MysqlAddressError } from '../../lib/kernel/mysql-address.ts';
import type { Delivery } from '../../lib/webhooks/delivery.ts';
import { createWorkStore, type NewDelivery, type Recorded } from '../../lib/webhooks/work-store.ts';
import { createClient } from '../support/client.ts';
import {
  type Certificates,
  type DatabaseServer,
  makeCertificates,
  startDatabaseServer,
} from '../support/mariadb-server.ts';
import { type Stack, startStack } from '../support/stack.ts';

let server: DatabaseServer;
let certificates: Certificates;
let stack: Stack;
let db: Database;

const hostile = [
  '--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH',
  '--default-time-zone=+05:45',
  // The character set that a client names when it connects is passed over.
  '--skip-character-set-client-handshake',
  '--character-set-server=latin1',
  '--collation-server=latin1_german2_ci',
];

test.before(async () => {
  certificates = await makeCertificates();
  const { ca, certificate, key } = certificates;
  server = await startDatabaseServer([
    ...hostile,
    ...[`--ssl-ca=${ca}`, `--ssl-cert=${certificate}`, `--ssl-key=${key}`],
  ]);
  stack = await startStack('hostile', { mysqlUrl: server.url });
  db = createMysql({ url: server.url, pool: 2 });
});
test.after.always(async () => {
  await db?.destroy();
  await stack?.close();
  await server?.stop();
  await certificates?.remove();
});

const rowOf = async (pool: Database, sql: string): Promise<Record<string, unknown>> => {
  const [[row]] = (await pool.raw(sql)) as [[Record<string, unknown>]];
  return row;
};

test.serial(
  'every connection has the modes, collation, time zone and isolation we rely on',
  async (t) => {
    const globally = await rowOf(
      db,
      'SELECT @@global.sql_mode AS mode, @@global.time_zone AS zone',
    );
    t.regex(String(globally.mode), /NO_BACKSLASH_ESCAPES/);
    t.is(globally.zone, '+05:45');
    const session = await rowOf(
      db,
      `SELECT @@session.sql_mode AS mode, @@session.time_zone AS zone, @@collation_connection AS collation,
      @@character_set_client AS client, @@character_set_results AS results`,
    );
    t.deepEqual(
      { ...session },
      {
        mode: 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
        zone: '+00:00',
        collation: 'utf8mb4_unicode_ci',
        client: 'utf8mb4',
        results: 'utf8mb4',
      },
    );
  },
);

test.serial('a text is bound as that text, whatever is in it', async (t) => {
  const texts = ["x'||1#@ex.test", 'a\\', "\\'; --", 'q"q', '\u0000\b\t\n\r\u001a%_', 'é😀ض'];
  for (const text of texts) {
    const [[row]] = (await db.raw('SELECT ? AS text, ? AS id', [text, Buffer.from(text)])) as [
      [{ text: string; id: Buffer }],
    ];
    t.is(row.text, text);
    t.is(String(row.id), text);
  }
});

test.serial('pinning is said once per connection, not per statement', async (t) => {
  const one = createMysql({ url: server.url, pool: 1 });
  t.teardown(() => one.destroy());
  const count = async () =>
    Number((await rowOf(one, "SHOW SESSION STATUS LIKE 'Questions'")).Value);
  const before = await count();
  for (let times = 0; times < 5; times += 1) await one.raw('SELECT 1');
  t.is(await count(), before + 6);
});

test.serial(
  'the e-mail x’||1#@ex.test is an e-mail: it registers, logs in and finds nobody else',
  async (t) => {
    const [plain, odd] = ['plain@ex.test', "x'||1#@ex.test"];
    const password = 'a long enough passphrase';
    const register = (email: string) =>
      stack.anybody.post('/v1/clients/register', {
        ...{ email, password, phone: '+14155550123' },
        name: 'O\'Brien \\ "Söhne" 😀',
      });
    t.is((await register(plain)).status, 200);
    const made = await register(odd);
    t.is(made.status, 200, made.text);
    const login = await stack.anybody.post('/v1/clients/login', { email: odd, password });
    t.is(login.status, 200, login.text);
    const session = createClient(stack.url, String(login.data.session_token));
    const me = await session.get('/v1/clients/me');
    t.is(me.data.email, odd);
    t.is(me.data.name, 'O\'Brien \\ "Söhne" 😀');
    const others = await db('accounts').where({ email_key: odd });
    t.deepEqual(
      others.map(({ email }) => email),
      [odd],
    );
  },
);

test.serial(
  'deliveries and attempts are written as they are, quotes and backslashes too',
  async (t) => {
    const store = createWorkStore(db);
    const now = Date.now();
    const body = JSON.stringify({
      name: "x'||1#",
      path: 'a\\',
      quote: '"',
      emoji: '😀',
      line: '\n',
    });
    const rows = ['otp.verified', "x'||1#"].map(
      (type): NewDelivery => ({
        id: newId(),
        accountId: newId(),
        eventId: newId().replaceAll('-', ''),
        type,
        mode: 'live',
        body,
        place: { kind: 'leased', until: now + 60_000 },
      }),
    );
    t.is((await store.add(rows, now)).size, 2);
    t.is((await store.add(rows, now)).size, 2, 'once more: they are there');
    const reason = "x'||1#";
    const recorded = rows.map(
      (row, index): Recorded => ({
        delivery: {
          id: row.id,
          accountId: row.accountId,
          eventId: row.eventId,
          type: row.type,
          body: row.body,
        } as Delivery,
        attempt: { number: 1, at: now, status: index === 0 ? 500 : null, reason, durationMs: 7 },
        counted: true,
        to: { status: 'pending', nextAttemptAt: now + 1_000 + index },
      }),
    );
    await store.record(recorded, now);
    const kept = await db('webhook_deliveries').orderBy('id');
    t.deepEqual(
      kept.map((row) => [idText(row.id), row.type, row.body, row.next_attempt_at, row.tries]),
      rows.map((row, index) => [row.id, row.type, body, now + 1_000 + index, 1]),
    );
    const attempts = await db('webhook_attempts').orderBy('delivery_id');
    t.deepEqual(
      attempts.map((row) => [idText(row.delivery_id), row.status, row.reason, row.duration_ms]),
      rows.map(({ id }, index) => [id, index === 0 ? 500 : null, reason, 7]),
    );
  },
);

const encrypted = async (parameters: string): Promise<boolean> => {
  const pool = createMysql({ url: `${server.url}${parameters}`, pool: 1 });
  try {
    return (await rowOf(pool, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")).Value !== '';
  } finally {
    await pool.destroy();
  }
};

test.serial(
  'ssl-mode decides whether the connection is encrypted and whose certificate is taken',
  async (t) => {
    const { ca, otherCa } = certificates;
    t.false(await encrypted(''));
    t.false(await encrypted('?ssl-mode=DISABLED'));
    for (const parameters of [
      '?ssl-mode=PREFERRED',
      '?ssl-mode=REQUIRED',
      `?ssl-mode=VERIFY_CA&ssl-ca=${ca}`,
      `?ssl-ca=${ca}`,
      `?ssl-mode=VERIFY_IDENTITY&ssl-ca=${ca}`,
    ]) {
      t.true(await encrypted(parameters), parameters);
    }
    for (const parameters of [
      `?ssl-mode=VERIFY_CA&ssl-ca=${otherCa}`,
      `?ssl-mode=VERIFY_IDENTITY&ssl-ca=${otherCa}`,
      // The public authorities did not sign it.
      '?ssl-mode=VERIFY_IDENTITY',
    ]) {
      const refused = await t.throwsAsync(encrypted(parameters), undefined, parameters);
      t.regex(String(refused), /certificate/, parameters);
      t.true(isOutage(refused), parameters);
    }
  },
);

test.serial('a file of ssl-ca that cannot be read stops the process with its name', (t) => {
  const url = `${server.url}?ssl-ca=${certificates.ca}.gone`;
  t.throws(() => createMysql({ url, pool: 1 }), {
    instanceOf: MysqlAddressError,
    message: /^MYSQL_URL: the ssl-ca file \S+ca\.pem\.gone cannot be read$/,
  });
});

test.serial('a certificate for another host is refused by VERIFY_IDENTITY alone', async (t) => {
  const { ca, elsewhere, key } = certificates;
  await server.restart([`--ssl-ca=${ca}`, `--ssl-cert=${elsewhere}`, `--ssl-key=${key}`]);
  t.true(await encrypted(`?ssl-mode=VERIFY_CA&ssl-ca=${ca}`));
  const refused = await t.throwsAsync(encrypted(`?ssl-mode=VERIFY_IDENTITY&ssl-ca=${ca}`));
  t.regex(String(refused), /altnames/);
});

test.serial(
  'a server without TLS is refused but by PREFERRED, which goes on without',
  async (t) => {
    await server.restart(['--skip-ssl']);
    t.false(await encrypted('?ssl-mode=PREFERRED'));
    for (const parameters of ['?ssl-mode=REQUIRED', `?ssl-ca=${certificates.ca}`]) {
      const refused = await t.throwsAsync(encrypted(parameters), undefined, parameters);
      t.regex(String(refused), /does not support secure connection/);
      t.true(isOutage(refused), parameters);
    }
  },
);
