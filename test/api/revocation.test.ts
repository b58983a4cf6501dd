// What ends on one process has ended on every other within a second, also while an engine is away (issue 3).
import { fork } from 'node:child_process';
import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { type Listening, listen } from '../../api/listen.ts';
import { rotateWebhookSecret } from '../../lib/accounts/webhook-secret.ts';
import { type ApiApp, createApiApp } from '../../lib/app.ts';
import { createPrices, type Prices } from '../../lib/billing/prices.ts';
import { minute } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { forceLogout, suspendAccount } from '../../lib/security/suspend.ts';
import { createEndpoints, type Endpoints } from '../../lib/webhooks/endpoints.ts';
import { endKey, ownerActs } from '../support/acts.ts';
import { type Client, createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { testUrl } from '../support/names.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let otherApi: ApiApp;
let otherDoor: Listening;
let otherUrl: string;
const clock = createHandClock();

// The stack's own API reaches its engines over lines that can be cut; the second one has its own way to them.
test.before(async () => {
  stack = await startStack('revocation', { clock, workers: [], cuttable: true });
  const config = { ...stack.config, redisUrl: testUrl('TESSERA_TEST_REDIS_URL').href };
  otherApi = await createApiApp({ config, log: silentLog, processName: 'api2', clock });
  otherDoor = await listen(otherApi);
  otherUrl = `http://127.0.0.1:${otherDoor.port}`;
});
test.after.always(async () => {
  await otherDoor?.close();
  await otherApi?.close();
  await stack?.close();
});

let prices: Prices | undefined;
/** The other process's memory of prices. */
const pricesThere = (): Prices => {
  prices ??= createPrices({ ...otherApi, everywhereMicros: otherApi.config.priceMicros });
  return prices;
};

let endpoints: Endpoints | undefined;
/** The other process's memory of webhook endpoints. */
const endpointsThere = (): Endpoints => {
  endpoints ??= createEndpoints(otherApi);
  return endpoints;
};

const me = '/v1/clients/me';
const security = '/v1/clients/security';

/** The same credential at the other process. */
const there = (client: Client): Client => createClient(otherUrl, client.key);

const isOpen = async (client: Client): Promise<boolean> => (await client.get(me)).status === 200;

/** Both processes have seen the credential and remember it. */
const remembered = async (t: ExecutionContext, client: Client): Promise<void> => {
  for (const each of [client, there(client)]) {
    t.true(await isOpen(each));
    t.true(await isOpen(each));
  }
};

/** A request begun a second after `since` is refused by both processes. */
const endedWithinASecond = async (
  t: ExecutionContext,
  client: Client,
  since: number,
): Promise<void> => {
  await eventually(t, async () => {
    const late = performance.now() - since > 1_000;
    const open = [await isOpen(client), await isOpen(there(client))];
    if (late) t.deepEqual(open, [false, false], 'more than a second later');
    return open.includes(true) ? undefined : true;
  });
};

type End = (who: Customer, victim: Client) => Promise<unknown>;

const idOf = async (victim: Client): Promise<string> => {
  const { data } = await victim.get(`${security}/sessions`);
  const items = data.items as { id: string; current: boolean }[];
  return items.find(({ current }) => current)?.id ?? '';
};

const changePassword = ({ session, password }: Customer) =>
  session.post('/v1/clients/password', {
    ...{ current_password: password, new_password: 'a fresh long password' },
  });

const ends: Record<string, End> = {
  'a logout': (_, victim) => victim.post('/v1/clients/logout', undefined),
  'the end of one session': async (who, victim) =>
    who.session.call('DELETE', `${security}/sessions/${await idOf(victim)}`),
  'the end of the others': (who) => who.session.post(`${security}/sessions/revoke-others`, {}),
  'a changed password': changePassword,
  'a forced logout': (who) => forceLogout(stack.api, who.accountId),
  'a suspension': (who) =>
    suspendAccount(stack.api, { accountId: who.accountId, reason: 'x', requestId: 'r' }),
};

for (const [name, end] of Object.entries(ends)) {
  test.serial(`${name} holds for sessions on both processes within a second`, async (t) => {
    const who = await stack.customer();
    const victim = await stack.sessionOf(who.accountId);
    await remembered(t, victim);
    await end(who, victim);
    const since = performance.now();
    t.false(await isOpen(victim), 'at once where it happened');
    await endedWithinASecond(t, victim, since);
  });
}

const withoutRedis = async (work: () => Promise<void>): Promise<void> => {
  stack.lines?.redis.cut();
  try {
    await work();
  } finally {
    stack.lines?.redis.mend();
  }
};

test.serial(
  'a key that is revoked while its process has lost Redis ends everywhere within a second',
  async (t) => {
    const who = await stack.customer();
    await remembered(t, who.live);
    await withoutRedis(async () => {
      const revoked = await who.session.call('DELETE', `/v1/clients/keys/${who.liveKeyId}`);
      const since = performance.now();
      t.is(revoked.status, 200, 'it was done, so it is not said to have failed');
      await endedWithinASecond(t, who.live, since);
    });
    t.false(await isOpen(who.live));
    t.is((await who.session.call('DELETE', `/v1/clients/keys/${who.liveKeyId}`)).status, 404);
  },
);

test.serial('without Redis no password is tried, and so none is changed', async (t) => {
  const who = await stack.customer();
  const victim = await stack.sessionOf(who.accountId);
  await withoutRedis(async () => {
    t.is((await changePassword(who)).status, 503);
  });
  t.true(await isOpen(victim));
});

for (const [name, end] of Object.entries(ends)) {
  if (name === 'a changed password') continue;
  test.serial(`${name} during a blip of Redis is not forgotten after it`, async (t) => {
    const who = await stack.customer();
    const victim = await stack.sessionOf(who.accountId);
    await remembered(t, victim);
    await withoutRedis(async () => {
      await end(who, victim);
    });
    await endedWithinASecond(t, victim, performance.now());
  });
}

const allEnds: Record<string, End> = {
  ...ends,
  'a revoked key': (who) => who.session.call('DELETE', `/v1/clients/keys/${who.liveKeyId}`),
};

for (const [name, end] of Object.entries(allEnds)) {
  test.serial(`${name} holds though its process announces nothing after the commit`, async (t) => {
    const who = await stack.customer();
    const victim = name.includes('key') ? who.live : await stack.sessionOf(who.accountId);
    await remembered(t, victim);
    const silenced = sinon.stub(stack.api.revocations, 'announce').resolves();
    try {
      await end(who, victim);
      await endedWithinASecond(t, victim, performance.now());
    } finally {
      silenced.restore();
    }
  });
}

/** What operators change, and how the other process sees it. */
const settings: Record<string, [(who: Customer) => unknown, (who: Customer) => unknown]> = {
  'a price of the platform': [
    () => stack.api.prices.setPrice('GB', { priceMicros: 41_000, costMicros: 0 }),
    ({ accountId }) => pricesThere().of(accountId, 'GB'),
  ],
  'a price of one account': [
    ({ accountId }) => stack.api.prices.setOverride(accountId, 'US', 42_000),
    ({ accountId }) => pricesThere().of(accountId, 'US'),
  ],
  'a pause of a channel': [
    () => stack.api.prices.setPaused('channel:telegram', true, clock.now()),
    () => otherApi.pauses.isPaused('telegram'),
  ],
  'a pause of the trial': [
    () => stack.api.prices.setPaused('trial', true, clock.now()),
    () => pricesThere().isPaused('trial'),
  ],
  'an account kept off the shared number': [
    ({ accountId }) => stack.api.prices.setSharedPaused(accountId, true),
    async ({ live }) => (await otherApi.authenticate(`Bearer ${live.key}`)).account.sharedPaused,
  ],
  'a setting of the platform': [
    () => stack.api.platform.store.set('fraud_guard', 'off', clock.now()),
    () => otherApi.platform.guardMode(),
  ],
  'a new secret for webhooks': [
    ({ accountId }) => rotateWebhookSecret(stack.api, accountId, ownerActs),
    async ({ accountId }) => (await endpointsThere().of([accountId])).get(accountId),
  ],
  'a setting given back': [
    () => stack.api.platform.store.set('fraud_guard', null, clock.now()),
    () => otherApi.platform.guardMode(),
  ],
};

for (const [name, [change, seen]] of Object.entries(settings)) {
  test.serial(`${name} holds within a second though nobody announced it`, async (t) => {
    const who = await stack.customer();
    // Written so that nobody hears of it.
    await stack.api.db('accounts').update({ webhook_url: 'https://hooks.tessera.example/' });
    const before = await seen(who);
    t.deepEqual(await seen(who), before);
    await change(who);
    const since = performance.now();
    await eventually(t, async () => {
      const late = performance.now() - since > 1_000;
      const now = await seen(who);
      if (late) t.notDeepEqual(now, before, 'more than a second later');
      return now === before ? undefined : true;
    });
  });
}

test.serial(
  'a key whose process is killed right after the commit ends within a second',
  async (t) => {
    const who = await stack.customer();
    await remembered(t, who.live);
    const program = new URL('../support/dying-revoker.ts', import.meta.url);
    const child = fork(program, [JSON.stringify(stack.env), who.accountId, who.liveKeyId]);
    const [, signal] = await once(child, 'exit');
    t.is(signal, 'SIGKILL');
    await endedWithinASecond(t, who.live, performance.now());
  },
);

test.serial('repeating the end of what has ended tells everybody again', async (t) => {
  const who = await stack.customer();
  await remembered(t, who.live);
  // A process that crashed between writing and telling.
  await endKey(stack.api.keys, who.accountId, who.liveKeyId, clock.now());
  t.is((await who.session.call('DELETE', `/v1/clients/keys/${who.liveKeyId}`)).status, 404);
  await endedWithinASecond(t, who.live, performance.now());

  const victim = await stack.sessionOf(who.accountId);
  const id = await idOf(victim);
  await remembered(t, victim);
  await stack.api.sessions.revoke(who.accountId, id, clock.now(), { reason: 'logout' });
  t.is((await who.session.call('DELETE', `${security}/sessions/${id}`)).status, 404);
  await endedWithinASecond(t, victim, performance.now());
});

test.serial('a proof given to one process counts at every other at once', async (t) => {
  const who = await stack.customer();
  clock.forward(10 * minute + 1);
  await remembered(t, who.session);
  const refused = await there(who.session).post('/v1/clients/keys', { name: 'x' });
  t.is(refused.error.code, 'REAUTH_REQUIRED');
  t.is((await who.session.post(`${security}/reauth`, { password: who.password })).status, 200);
  const made = await there(who.session).post('/v1/clients/keys', { name: 'x' });
  t.is(made.status, 200);
  t.is((await there(who.session).post(`${security}/sessions/revoke-others`, {})).status, 200);
});
