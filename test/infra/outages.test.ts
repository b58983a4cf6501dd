// Which errors mean that an engine is away, so that callers hear 503 and jobs are not counted as failed.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import test from 'ava';
import { createMysql } from '../../lib/infra/mysql.ts';
import { isOutage } from '../../lib/infra/outages.ts';

// The package does not export its table, so it is found by path.
const require = createRequire(import.meta.url);
const numbers = require(
  join(dirname(require.resolve('mysql2')), 'lib/constants/errors.js'),
) as Record<string, number | undefined>;

const coded = (code: string, errno?: number): Error =>
  Object.assign(new Error(code), { code, errno });

test('a server that is away, ends, is full or was made read-only is an outage', (t) => {
  const server = [
    ...['ER_SERVER_SHUTDOWN', 'ER_NORMAL_SHUTDOWN', 'ER_CON_COUNT_ERROR', 'ER_QUERY_INTERRUPTED'],
    ...['ER_OPTION_PREVENTS_STATEMENT', 'ER_READ_ONLY_MODE', 'ER_TOO_MANY_USER_CONNECTIONS'],
    ...['ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION', 'ER_CLIENT_INTERACTION_TIMEOUT'],
    ...['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_SESSION_WAS_KILLED'],
    ...['ER_ABORTING_CONNECTION', 'ER_NEW_ABORTING_CONNECTION'],
  ];
  for (const code of server) {
    t.is(typeof numbers[code], 'number', `${code} is no name of mysql2's`);
    t.true(isOutage(coded(code)), code);
  }
  const network =
    'EAI_AGAIN ENOTFOUND ENETUNREACH EHOSTUNREACH ECONNREFUSED ECONNRESET ECONNABORTED';
  for (const code of network.split(' ')) t.true(isOutage(coded(code)), code);
  t.true(isOutage(coded('undefined', 1927)), 'a killed connection of MariaDB');
});

test('a mistake of ours is none', (t) => {
  for (const code of ['ER_DUP_ENTRY', 'ER_NO_SUCH_TABLE', 'ER_PARSE_ERROR', 'ER_DATA_TOO_LONG']) {
    t.false(isOutage(coded(code)), code);
  }
  t.false(isOutage(new Error('no')));
  t.false(isOutage('ECONNREFUSED'));
});

test('a name that leads nowhere is an outage as it comes from the driver', async (t) => {
  const db = createMysql({ url: 'mysql://root:none@no-such-host.invalid:3306/none', pool: 1 });
  t.teardown(() => db.destroy());
  const error = await t.throwsAsync(async () => db.raw('SELECT 1'));
  t.true(isOutage(error), String(error));
});
