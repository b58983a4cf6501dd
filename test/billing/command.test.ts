// npm run reconcile as people and cron run it: what it prints, and what it ends with.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import { createMysql } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { createMigratedDatabase } from '../support/schema.ts';

const script = join(import.meta.dirname, '../../workers/reconcile.ts');
const secret = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

const run = (env: Record<string, string>) =>
  new Promise<{ code: number; out: string; err: string }>((resolve) => {
    const options = { env: { ...env, PATH: process.env.PATH } };
    execFile(process.execPath, [script], options, (error, out, err) => {
      resolve({ code: Number(error?.code ?? 0), out, err });
    });
  });

const settings = (mysqlUrl: string): Record<string, string> => ({
  ...{ MYSQL_URL: mysqlUrl, REDIS_URL: 'redis://127.0.0.1:1', AMQP_URL: 'amqp://127.0.0.1:1' },
  ...{ CODE_PEPPERS: secret, PHONE_PEPPER: secret, SEALING_KEYS: secret },
});

test('sound books end with 0, and a difference with its account and 1', async (t) => {
  const database = await createMigratedDatabase('command');
  const db = createMysql({ url: database.url, pool: 1 });
  t.teardown(async () => {
    await db.destroy();
    await database.drop();
  });
  const sound = await run(settings(database.url));
  t.is(sound.code, 0, sound.err);
  t.regex(sound.out, /^The books of \d+ accounts? agree, through \d{4}-.*\n$/);

  const id = newId();
  await db('accounts').insert({
    ...{ id: idBytes(id), email: id, email_key: id, password_hash: '-', name: 'x', phone: '+1' },
    ...{ locale: 'en', status: 'active', billing_plan: 'trial', tier: 'standard', created_at: 1 },
    balance_micros: 5_000_000,
  });
  const wrong = await run(settings(database.url));
  t.is(wrong.code, 1, wrong.err);
  t.regex(wrong.out, /^The books do not agree, through .*:\n {2}not so: /);
  t.true(wrong.out.includes(`account ${id}`));
});

test('without settings, and without a database, it says so in lines and ends with 2', async (t) => {
  const unset = await run({});
  t.is(unset.code, 2);
  t.regex(unset.err, /^The settings are not usable:\n {2}MYSQL_URL is required\n/);
  t.regex(unset.err, /npm run ops -- reconcile/);
  t.notRegex(unset.err, / at /);

  const away = await run(settings('mysql://tessera:hush@127.0.0.1:1/tessera'));
  t.is(away.code, 2);
  t.regex(away.err, /^The books could not be read: .*\n$/);
  t.false(away.err.includes('hush'));
});
