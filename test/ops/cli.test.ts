// The command line: readable tables, JSON, help, and exit codes a script can build on.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { connect } from 'amqplib';
import test from 'ava';
import { runCommandLine } from '../../api/cli/run.ts';
import { facts, span, table } from '../../api/cli/table.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { opsToken } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;
let customer: Customer;
const folder = mkdtempSync(join(tmpdir(), 'tessera-cli-'));

test.before(async () => {
  stack = await startStack('opscli', { workers: [] });
  ops = await startOps(stack);
  customer = await stack.customer({ money: 5 });
});

test.after.always(async () => {
  rmSync(folder, { recursive: true, force: true });
  await ops?.close();
  await stack?.close();
});

const run = (line: string, more: { typed?: string; env?: Record<string, string> } = {}) =>
  runCommandLine(line.split(' ').filter(Boolean), {
    env: more.env ?? { OPS_URL: ops.url, OPS_TOKEN: opsToken },
    ask: () => Promise.resolve(more.typed),
    say: () => undefined,
  });

const bury = async (job: string, count: number): Promise<void> => {
  const broker = await connect(stack.config.amqpUrls);
  const channel = await broker.createConfirmChannel();
  for (let n = 0; n < count; n++) {
    const headers = {
      attempt: 3,
      reason: 'attempts_exhausted',
      failed_at: Date.now(),
      last_error: 'boom',
    };
    channel.publish('dead', job, Buffer.from('{}'), {
      persistent: true,
      messageId: `m-${n}`,
      headers,
    });
  }
  await channel.waitForConfirms();
  await broker.close();
};

test('tables stand in columns, numbers to the right, spans in their largest unit', (t) => {
  t.is(
    table(
      ['JOB', 'READY', 'NOTE'],
      [
        ['whatsapp.send', 7, null],
        ['x', 1200, 'two\nlines'],
      ],
    ),
    'JOB            READY  NOTE\nwhatsapp.send      7  -\nx               1200  two lines\n',
  );
  t.is(table(['A'], []), 'nothing\n');
  t.is(
    facts([
      ['a', 1],
      ['longer', true],
    ]),
    'a       1\nlonger  yes\n',
  );
  t.deepEqual([null, 0, 999, 1_500, 90_000, 7_200_000, 200_000_000].map(span), [
    '-',
    '0ms',
    '999ms',
    '1.5s',
    '1.5m',
    '2h',
    '2.3d',
  ]);
});

test.serial('queues as a table and as JSON', async (t) => {
  const shown = await run('queues');
  t.is(shown.exitCode, 0, shown.err);
  t.regex(
    shown.out,
    /^JOB +READY +UNACKED +OLDEST +IN\/S +OUT\/S +WORKERS +RETRY +DEAD\nwhatsapp\.send /,
  );
  const json = JSON.parse((await run('queues --json')).out);
  t.is(json.items[0].job, 'whatsapp.send');
});

test.serial('dead letters: listed, redriven, and purged only when confirmed', async (t) => {
  await bury('whatsapp.send', 5);
  const list = await run('dead list whatsapp.send --limit 2');
  t.regex(list.out, /^5 dead: attempts_exhausted 5\nID +REASON/);
  t.regex(list.out, /boom/);
  const [, , first = ''] = list.out.split('\n');
  const one = await run(`redrive whatsapp.send --id ${first.split(' ')[0]}`);
  t.regex(one.out, /status +done\nletters +1\n/);
  t.regex((await run('dead redrive whatsapp.send --most 1')).out, /letters +1\n/);
  t.is((await run('purge whatsapp.send')).exitCode, 2);
  const wrong = await run('purge whatsapp.send', { typed: 'whatsapp' });
  t.deepEqual([wrong.exitCode, wrong.err], [1, 'Not confirmed; nothing was done.\n']);
  t.regex(
    (await run('purge whatsapp.send --most 1', { typed: 'whatsapp.send' })).out,
    /letters +1\n/,
  );
  t.regex((await run('purge whatsapp.send --yes')).out, /letters +2\n/);
  t.regex((await run('audit --limit 1')).out, /dead\.purge +whatsapp\.send +done +2/);
});

test.serial('accounts: found, credited, corrected, suspended and taken back', async (t) => {
  const id = customer.accountId;
  t.regex((await run(`accounts ${customer.email}`)).out, new RegExp(`${id}.*active +trial +5\n`));
  t.regex(
    (await run(`credit ${id} 2.5 --note Wire --reference w1`)).out,
    /booked +deposit:w1\nbalance +7\.5\n/,
  );
  t.regex((await run(`adjust ${id} -0.5`)).out, /balance +7\n/);
  t.regex((await run(`price ${id} US 0.02`)).out, /US +0\.02/);
  t.is((await run(`suspend ${id}`)).exitCode, 2);
  t.regex((await run(`suspend ${id} --reason spam`)).out, /status +suspended\nreason +spam/);
  t.regex((await run(`reinstate ${id}`)).out, /status +active/);
  const no = await run('account 0192f0c1-7a3b-7c4d-8e5f-0123456789ab');
  t.deepEqual([no.exitCode, no.err], [1, 'NOT_FOUND: There is no such resource.\n']);
});

test.serial('channels, switches, processes, books and messages', async (t) => {
  t.regex((await run('pause telegram --note broken')).out, /telegram: paused/);
  t.regex((await run('channels')).out, /telegram +bot +telegram +paused/);
  t.regex((await run('resume telegram')).out, /telegram: sends/);
  t.is((await run('pause pigeon')).exitCode, 1);
  t.is((await run('switch trial off')).out, 'trial: off\n');
  t.regex((await run('platform')).out, /trial +yes/);
  t.is((await run('switch trial on')).exitCode, 0);
  t.regex((await run('processes')).out, /ops +\d+ +alive/);
  const books = await run('reconcile');
  t.is(books.exitCode, 0);
  t.regex(books.out, /the books agree/);
  t.deepEqual(
    [(await run('message nothing')).exitCode, (await run('message nothing')).err],
    [1, 'No such message.\n'],
  );
  t.regex((await run('capacity')).out, /nothing/);
  const health = await run('health');
  t.is(health.exitCode, 0);
  t.regex(health.out, /rabbitmq +ok +\d+/);
  t.regex(health.out, /telegram +ok/);
  t.regex((await run('platform price DE 0.07 0.05')).out, /DE +0.07 +0.05/);
  t.regex((await run('platform price DE none 0.05')).out, /DE +- +0.05/);
  t.regex((await run('platform price-default DE')).out, /DE +- +-/);
  t.is((await run('platform price UK 1 1')).exitCode, 1);
  t.is((await run('platform price DE 1e3 1')).exitCode, 2);
  const { accountId: id } = customer;
  t.regex((await run(`shared-number ${id} off`)).out, /shared number +paused/);
  t.regex((await run(`shared-number ${id} on`)).out, /shared number +in use/);
  t.is((await run(`shared-number ${id} maybe`)).exitCode, 2);
});

test.serial('an order is stopped, countries and the guard are set', async (t) => {
  await bury('whatsapp.send', 60);
  const begun = JSON.parse((await run('redrive whatsapp.send --rate 2 --no-wait --json')).out);
  t.is((await run(`stop ${begun.run.id}`)).out, 'It stops.\n');
  t.is((await run(`stop ${customer.accountId}`)).exitCode, 1);
  await eventually(t, async () => {
    const purged = await run('purge whatsapp.send --yes');
    return purged.exitCode === 0 ? true : undefined;
  });
  t.is((await run('countries de,FR')).out, 'DE, FR\n');
  t.is((await run('countries UK')).exitCode, 1);
  t.is((await run('countries default')).out, 'all\n');
  t.is((await run('guard shadow')).out, 'shadow\n');
  t.is((await run('guard default')).out, 'enforce\n');
  const missing = await run('redrive whatsapp.send --id 0123456789abcdef');
  t.is(missing.exitCode, 1);
  t.regex(missing.out, /1 of 1 named letters were not there/);
});

test.serial(
  'a credit whose answer is lost can be asked for again, and says when it was booked before',
  async (t) => {
    const id = customer.accountId;
    const lost = await run(`credit ${id} 1`, {
      env: { OPS_URL: 'http://127.0.0.1:9', OPS_TOKEN: opsToken },
    });
    t.is(lost.exitCode, 3);
    const [, reference = ''] = /--reference (cli-[0-9a-f-]{36})/.exec(lost.err) ?? [];
    t.regex((await run(`credit ${id} 1 --reference ${reference}`)).out, /^booked/);
    t.regex((await run(`credit ${id} 1 --reference ${reference}`)).out, /^was booked before/);
    for (const amount of ['0x10', '1e3', '1,5', 'Infinity']) {
      t.is((await run(`credit ${id} ${amount}`)).exitCode, 2, amount);
    }
  },
);

test('names that customers chose cannot speak to the terminal', (t) => {
  const shown = table(['NAME'], [['a\u001b[2Jb\u009b1m\u202ec\nd']]);
  t.is(shown, 'NAME\na\u{FFFD}[2Jb\u{FFFD}1m\u{FFFD}c d\n');
});

test.serial('a reader that has read enough is no error', async (t) => {
  const main = resolve(import.meta.dirname, '../../api/cli/main.ts');
  const env = { PATH: process.env.PATH ?? '', OPS_URL: `${ops.url}/`, OPS_TOKEN: opsToken };
  const command = `"${process.execPath}" "${main}" queues --json | true; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', command], { env });
  t.is(stdout, '0\n');
  t.is(stderr, '');
});

test.serial('help, and what is not understood', async (t) => {
  const help = await run('--help');
  t.is(help.exitCode, 0);
  for (const name of [
    'queues',
    'dead list',
    'redrive',
    'purge',
    'credit',
    'suspend',
    'payments',
    'claim',
    'channels',
    'message',
    'reconcile',
  ]) {
    t.regex(help.out, new RegExp(`^  ${name} `, 'm'));
  }
  t.regex((await run('redrive --help')).out, /--rate/);
  t.is((await run('redrive')).exitCode, 2);
  t.is((await run('dance')).exitCode, 2);
  t.is((await run('-h')).exitCode, 0);
  t.regex((await run('redrive -h')).out, /--rate/);
  for (const much of [
    'redrive whatsapp.send telegram.send',
    'queues all',
    'suspend a b --reason x',
  ]) {
    t.is((await run(much)).exitCode, 2, much);
  }
  t.is((await run('queues', { env: { OPS_URL: ops.url } })).exitCode, 3);
  t.is((await run('queues --loud')).exitCode, 2);
  t.is((await run('dead list whatsapp.send --limit many')).exitCode, 2);
});

test.serial('a wrong token, nobody there, and the stack that runs here', async (t) => {
  const wrong = await run('queues', { env: { OPS_URL: ops.url, OPS_TOKEN: 'wrong' } });
  t.is(wrong.exitCode, 3);
  t.regex(wrong.err, /INVALID_TOKEN/);
  t.is(
    (await run('queues', { env: { OPS_URL: 'http://127.0.0.1:9', OPS_TOKEN: opsToken } })).exitCode,
    3,
  );
  t.is((await run('queues', { env: { TESSERA_STATE: folder } })).exitCode, 3);
  writeFileSync(join(folder, 'stack.json'), JSON.stringify({ ops: ops.url, ops_token: opsToken }));
  t.is((await run('queues', { env: { TESSERA_STATE: folder } })).exitCode, 0);
  const main = resolve(import.meta.dirname, '../../api/cli/main.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'queues', '--json'], {
    env: { PATH: process.env.PATH ?? '', TESSERA_STATE: folder },
  });
  t.is(JSON.parse(stdout).items.length, 7);
});
