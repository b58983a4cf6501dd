// The address of MySQL: what it says of the connection, and what it may not say.
import test from 'ava';
import { ConfigError, loadConfig } from '../../lib/kernel/config.ts';
import { MysqlAddressError, parseMysqlAddress } from '../../lib/kernel/mysql-address.ts';
import { testEnvironment } from '../support/settings.ts';

const base = 'mysql://user:sesame@db.example/tessera';

test('an address is read with its defaults, and without encryption unless it asks for it', (t) => {
  t.deepEqual(parseMysqlAddress(base), {
    host: 'db.example',
    port: 3306,
    user: 'user',
    password: 'sesame',
    database: 'tessera',
    tls: { mode: 'DISABLED', caFile: undefined },
  });
  const odd = parseMysqlAddress('mysql://a%40b:p%2F%25@[::1]:3307/x%20y');
  t.like(odd, { host: '::1', port: 3307, user: 'a@b', password: 'p/%', database: 'x y' });
  const { tls } = parseMysqlAddress(`${base}?ssl-ca=/etc/ca%20one.pem`);
  t.deepEqual(tls, { mode: 'VERIFY_CA', caFile: '/etc/ca one.pem' });
  t.is(parseMysqlAddress(`${base}?ssl-mode=VERIFY_IDENTITY`).tls.mode, 'VERIFY_IDENTITY');
});

for (const [address, problem] of [
  ['not an address', /must be one address of the form mysql:\/\/host:3306\/database/],
  ['mysqlx://user:sesame@db.example/tessera', /must be one address/],
  [`${base}#here`, /must be one address/],
  [`${base}?tls=true`, /has the unknown parameter tls; it may have ssl-mode and ssl-ca/],
  [`${base}?sslmode=REQUIRED`, /unknown parameter sslmode/],
  [`${base}?ssl-mode=REQUIRED&ssl-mode=DISABLED`, /has ssl-mode twice/],
  [`${base}?ssl-mode=`, /has ssl-mode without a value/],
  [`${base}?ssl-mode=required`, /unknown ssl-mode; it may be DISABLED, PREFERRED, REQUIRED/],
  [`${base}?ssl-mode=VERIFY_CA`, /VERIFY_CA without ssl-ca/],
  [`${base}?ssl-mode=REQUIRED&ssl-ca=/ca.pem`, /has ssl-ca, which ssl-mode=REQUIRED does not/],
  [`${base.replace('db.example', '10.0.0.7')}?ssl-mode=VERIFY_IDENTITY`, /needs a host name/],
  ['mysql://user:100%@db.example/tessera', /has a % that stands for nothing/],
] as const) {
  test(`MYSQL_URL ${address} stops the process with what is wrong, without the password`, (t) => {
    t.throws(() => parseMysqlAddress(address), { instanceOf: MysqlAddressError, message: problem });
    const engines = { mysql: address, redis: 'redis://h/0', amqp: 'amqp://h/', prefix: 'test:' };
    const error = t.throws(() => loadConfig(testEnvironment(engines, 'http://127.0.0.1:1')), {
      instanceOf: ConfigError,
    });
    t.regex(error?.message ?? '', new RegExp(`MYSQL_URL ${problem.source}|${problem.source}`));
    t.notRegex(error?.message ?? '', /sesame|100%/);
  });
}
