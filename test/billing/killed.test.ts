// Eight billing workers on one account, killed twenty times between a commit and its acknowledgement, under load.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { hour } from '../../lib/kernel/clock.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import { createClient } from '../support/client.ts';
import { testEnvironment } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

const workersAtOnce = 8;
const deathsWanted = 20;
const jobsBeforeDeath = 3;
const roundsMax = 150;

let stack: Stack;

test.before(async () => {
  stack = await startStack('killed', {
    workers: ['whatsapp', 'telegram', 'analytics'],
    settings: { PRICE_USD: '0.05' },
  });
});
test.after.always(() => stack?.close());

const program = new URL('../support/dying-billing.ts', import.meta.url);

/** Keeps so many workers running, each of which dies soon, until enough have died. */
const keepDying = (environment: string) => {
  const alive = new Set<ChildProcess>();
  let deaths = 0;
  let ended = false;
  const spawn = (): Promise<unknown> => {
    const jobs = deaths < deathsWanted ? jobsBeforeDeath : 0;
    const child = fork(program, [environment, String(jobs)], { stdio: 'inherit' });
    alive.add(child);
    child.once('exit', (_, signal) => {
      alive.delete(child);
      if (ended) return;
      if (signal === 'SIGKILL') deaths += 1;
      void spawn();
    });
    return once(child, 'message');
  };
  return {
    start: () => Promise.all(Array.from({ length: workersAtOnce }, spawn)),
    deaths: () => deaths,
    end: () => {
      ended = true;
      for (const child of alive) child.kill('SIGKILL');
    },
  };
};

const clientsOf = async (customer: Customer) => {
  const keys = await Promise.all(
    [1, 2, 3, 4, 5, 6, 7].map(async (n) => {
      const made = await customer.session.post('/v1/clients/keys', { name: `${n}`, mode: 'live' });
      return String(made.data.key);
    }),
  );
  return [customer.live, ...keys.map((key) => createClient(stack.url, key))];
};

test('whatever is killed, every success is charged once and the books agree', async (t) => {
  t.timeout(110_000);
  const customer = await stack.customer();
  const { accountId } = customer;
  await stack.api.ledger.setPlan(accountId, 'trial', 'pay_per_success');
  await stack.api.accounts.setTier(accountId, {
    ...{ name: 'custom', perMinute: 5_000, expiresAt: null },
  });
  await stack.api.revocations.announce();
  const clients = await clientsOf(customer);
  const { mysqlUrl: mysql, redisUrl: redis, amqpUrls: amqp, keyPrefix: prefix } = stack.config;
  const environment = testEnvironment({ mysql, redis, amqp, prefix }, stack.sim.url);
  const workers = keepDying(JSON.stringify(environment));
  await workers.start();

  const succeed = async (client: (typeof clients)[number]): Promise<void> => {
    const phone = stack.phone();
    t.is((await client.send(phone.number)).status, 200);
    const verified = await client.verify(phone.number, await phone.code());
    // Killed before it answered: the verification stands, and its charge follows.
    if (verified.status !== 200) t.is(verified.error.code, 'BILLING_ERROR');
  };
  let successes = 0;
  for (let round = 0; workers.deaths() < deathsWanted && round < roundsMax; round++) {
    await Promise.all(clients.map(succeed));
    successes += clients.length;
  }
  t.true(workers.deaths() >= deathsWanted, `${workers.deaths()} deaths`);

  const charges = async () => {
    const [row] = await stack.api
      .db('ledger')
      .where({ account_id: idBytes(accountId), kind: 'charge' })
      .count({ count: '*' });
    return Number(row?.count);
  };
  await eventually(t, async () => ((await charges()) >= successes ? true : undefined), 30_000);
  workers.end();
  t.is(await charges(), successes);
  const { differences } = await reconcile(stack.api, Date.now() + hour);
  t.deepEqual(differences, []);
  const balance = await stack.api.ledger.balance(accountId);
  t.is(balance?.micros, 10_000_000_000 - successes * 50_000);
  t.log(`${successes} successes, ${workers.deaths()} workers killed`);
});
