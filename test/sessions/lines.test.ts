// Sessions over time: forks of their tokens, what is listed and counted of them, and what is deleted when.
import { createHash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { day, minute, second } from '../../lib/kernel/clock.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import { purgeSecurity } from '../../lib/security/purge.ts';
import { type Opened, openSession, refreshSession } from '../../lib/sessions/open.ts';
import { generationsKept } from '../../lib/sessions/rules.ts';
import { createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('lines', { clock, workers: [] });
});
test.after.always(() => stack?.close());

const open = async ({ accountId }: Customer, source = 'tests'): Promise<Opened> => {
  const account = await stack.api.accounts.find(accountId);
  if (!account) throw new Error('no account');
  const visitor = { ip: '192.0.2.1', userAgent: 'tests', source };
  return openSession(stack.api, { account, visitor, mfa: false });
};

const refresh = ({ tokens }: Opened): Promise<Opened> => refreshSession(stack.api, tokens.refresh);

const refusesRefresh = (t: ExecutionContext, opened: Opened) =>
  t.throwsAsync(refresh(opened), { message: /session/ });

type Item = { id: string; current: boolean; token_reused_at: string | null };

const listed = async ({ tokens }: Opened): Promise<Item[]> => {
  const client = createClient(stack.url, tokens.access);
  return (await client.get('/v1/clients/security/sessions')).data.items as Item[];
};

test.serial(
  'a thief who copies a token within the grace is noticed at the next turn',
  async (t) => {
    const who = await stack.customer();
    const first = await open(who);
    const owner = await refresh(first);
    clock.forward(5 * second);
    const thief = await refresh(first);
    clock.forward(15 * minute);
    const next = await refresh(owner);
    clock.forward(5 * second);
    await refusesRefresh(t, thief);
    await refusesRefresh(t, next);
    const { revoked_reason: why } = await stack.api
      .db('sessions')
      .where({ id: idBytes((await sessionIdOf(first)) ?? '') })
      .first();
    t.is(why, 'refresh_token_reused');
  },
);

const sessionIdOf = async ({ tokens }: Opened): Promise<string | undefined> => {
  const { tokenHash } = await import('../../lib/sessions/tokens.ts');
  return (await stack.api.sessions.findByRefresh(tokenHash(tokens.refresh)))?.sessionId;
};

test.serial('a thief who turns first is noticed when the owner does', async (t) => {
  const first = await open(await stack.customer());
  const owner = await refresh(first);
  const thief = await refresh(first);
  clock.forward(minute);
  const stolen = await refresh(thief);
  clock.forward(minute);
  await refusesRefresh(t, owner);
  await refusesRefresh(t, stolen);
});

test.serial(
  'turning in step with the owner keeps a fork alive for the grace and no longer',
  async (t) => {
    const first = await open(await stack.customer());
    let [owner, thief] = [await refresh(first), await refresh(first)];
    clock.forward(4 * second);
    [owner, thief] = [await refresh(owner), await refresh(thief)];
    clock.forward(4 * second);
    [owner, thief] = [await refresh(owner), await refresh(thief)];
    clock.forward(4 * second);
    await refresh(owner);
    await refusesRefresh(t, thief);
  },
);

test.serial('a client that never got its new pair goes on with another', async (t) => {
  const first = await open(await stack.customer());
  await refresh(first);
  clock.forward(9 * second);
  let opened = await refresh(first);
  for (let turn = 0; turn < 3; turn++) {
    clock.forward(15 * minute);
    opened = await refresh(opened);
  }
  t.truthy((await listed(opened)).find(({ current }) => current));
});

test.serial('a session that a stolen token ended shows in the list for a month', async (t) => {
  const who = await stack.customer();
  const stolen = await open(who);
  const id = await sessionIdOf(stolen);
  await refresh(await refresh(stolen));
  await refusesRefresh(t, stolen);
  const shown = async () => (await listed(await open(who))).find((item) => item.id === id);
  const at = Date.parse(String((await shown())?.token_reused_at));
  t.true(Math.abs(at - clock.now()) < minute);
  clock.forward(29 * day);
  t.truthy(await shown());
  await purgeSecurity(stack.api);
  t.truthy(await shown(), 'nor is it deleted before');
  clock.forward(day + minute);
  t.is(await shown(), undefined);
  t.true((await listed(await open(who))).every((item) => item.token_reused_at === null));
});

test.serial(
  'a session that nobody refreshed for a week is not listed, counted or in the way',
  async (t) => {
    const who = await stack.customer();
    for (let time = 0; time < 19; time++) await open(who);
    clock.forward(7 * day + 1);
    const mine = await open(who);
    const second = await open(who);
    const items = await listed(mine);
    t.deepEqual(
      items.map(({ current }) => current),
      [false, true],
    );
    const client = createClient(stack.url, mine.tokens.access);
    const ended = await client.post('/v1/clients/security/sessions/revoke-others', undefined);
    t.is(ended.data.revoked, 1);
    await refusesRefresh(t, second);
  },
);

test.serial('of more than twenty sessions the one used last stays, however old', async (t) => {
  const who = await stack.customer();
  let oldest = await open(who);
  const others: Opened[] = [];
  for (let time = 0; time < 18; time++) others.push(await open(who));
  clock.forward(minute);
  oldest = await refresh(oldest);
  for (let time = 0; time < 3; time++) await open(who);
  t.truthy(await refresh(oldest));
  const gone = await Promise.allSettled(others.slice(0, 3).map(refresh));
  t.true(gone.filter(({ status }) => status === 'rejected').length >= 2);
});

const tokensOf = async (id: string | undefined): Promise<number> => {
  const rows = stack.api.db('session_tokens').where({ session_id: idBytes(id ?? '') });
  const [row] = (await rows.count({ count: '*' })) as { count: number }[];
  return Number(row?.count);
};

test.serial('tokens of one session have an end, however often it is refreshed', async (t) => {
  let opened = await open(await stack.customer());
  const id = await sessionIdOf(opened);
  // As if it had been refreshed that often: the rows that count are those of long ago.
  const session = { id: idBytes(id ?? '') };
  await stack.api
    .db('sessions')
    .where(session)
    .update({ generation: generationsKept + 10 });
  await stack.api
    .db('session_tokens')
    .where({ session_id: session.id, kind: 'refresh' })
    .update({ generation: generationsKept + 10 });
  const old = Array.from({ length: 12 }, (_, generation) => ({
    ...{ hash: Buffer.alloc(32, generation + 1), session_id: session.id, kind: 'refresh' },
    ...{ generation, expires_at: clock.now() + day, used_at: clock.now(), uses: 1 },
  }));
  await stack.api.db('session_tokens').insert(old);
  opened = await refresh(opened);
  t.is(
    await tokensOf(id),
    2 + 2 + 1 - 1,
    'generation 11 is within the bound, what is older is gone',
  );
});

test.serial('thirty refreshes a minute are taken from a session, then it waits', async (t) => {
  let opened = await open(await stack.customer());
  for (let turn = 0; turn < 30; turn++) opened = await refresh(opened);
  await t.throwsAsync(refresh(opened), { message: /Too many requests/ });
});

const counts = async () => {
  const [sessions, tokens, challenges] = await Promise.all(
    ['sessions', 'session_tokens', 'mfa_challenges'].map(
      async (table) => (await stack.api.db(table).count({ count: '*' }))[0]?.count,
    ),
  );
  return { sessions: Number(sessions), tokens: Number(tokens), challenges: Number(challenges) };
};

test.serial('what is over is deleted a day later, what is not stays', async (t) => {
  clock.forward(60 * day);
  await purgeSecurity(stack.api);
  t.deepEqual(await counts(), { sessions: 0, tokens: 0, challenges: 0 });
  const who = await stack.customer({ money: 0 });
  const kept = await open(who);
  const ended = await open(who);
  await stack.api.db('mfa_challenges').insert({
    ...{ hash: Buffer.alloc(32), account_id: idBytes(who.accountId), ip: '', user_agent: '' },
    ...{ source: 'x', expires_at: clock.now() + 5 * minute },
  });
  const client = createClient(stack.url, ended.tokens.access);
  await client.post('/v1/clients/logout', undefined);
  await purgeSecurity(stack.api);
  t.deepEqual(await counts(), { sessions: 3, tokens: 6, challenges: 1 });
  clock.forward(day + minute);
  await purgeSecurity(stack.api);
  t.deepEqual(await counts(), { sessions: 2, tokens: 2, challenges: 0 }, 'access tokens expired');
  t.truthy(await refresh(kept));
  clock.forward(7 * day);
  await purgeSecurity(stack.api);
  t.is((await counts()).sessions, 1, 'the one that was refreshed is idle only now');
  clock.forward(day);
  await purgeSecurity(stack.api);
  t.deepEqual(await counts(), { sessions: 0, tokens: 0, challenges: 0 });
});

test.serial('a backlog is worked off in batches', async (t) => {
  const { accountId } = await stack.customer({ money: 0 });
  await stack.api.db('session_tokens').insert(
    Array.from({ length: 1_100 }, (_, index) => {
      const hash = Buffer.alloc(32);
      hash.writeUInt32BE(index);
      const session_id = idBytes(accountId);
      return { hash, session_id, kind: 'access', generation: 1, expires_at: clock.now() - 1 };
    }),
  );
  await purgeSecurity(stack.api);
  t.is((await counts()).tokens, 2);
});

test.serial('a source is known to the account that logged in from it, for 90 days', async (t) => {
  const { sources } = stack.api;
  const [who, other] = [await stack.customer({ money: 0 }), await stack.customer({ money: 0 })];
  const { email } = who;
  t.false(await sources.isKnown(who.accountId, 'at home', clock.now()));
  t.false(await sources.isTrusted(email, 'at home', clock.now()));
  await open(who, 'at home');
  t.true(await sources.isKnown(who.accountId, 'at home', clock.now()));
  t.true(await sources.isTrusted(email.toUpperCase(), 'at home', clock.now()));
  t.false(await sources.isKnown(other.accountId, 'at home', clock.now()));
  t.false(await sources.isTrusted('nobody@tessera.example', 'at home', clock.now()));
  clock.forward(89 * day);
  await purgeSecurity(stack.api);
  t.true(await sources.isKnown(who.accountId, 'at home', clock.now()));
  clock.forward(day);
  t.false(await sources.isKnown(who.accountId, 'at home', clock.now()));
  await purgeSecurity(stack.api);
  const own = { account_id: idBytes(who.accountId) };
  t.is((await stack.api.db('known_sources').where(own)).length, 0);
});

test.serial(
  'a source that only signed up or reset is trusted, and is not known to logins',
  async (t) => {
    const { sources } = stack.api;
    const who = await stack.customer({ money: 0 });
    await sources.remember(who.accountId, 'a phone shop', clock.now());
    t.true(await sources.isTrusted(who.email, 'a phone shop', clock.now()));
    t.false(await sources.isKnown(who.accountId, 'a phone shop', clock.now()));
    await open(who, 'a phone shop');
    await sources.remember(who.accountId, 'a phone shop', clock.now());
    t.true(await sources.isKnown(who.accountId, 'a phone shop', clock.now()));
  },
);

test.serial('an account knows twenty sources; the one unused for longest goes', async (t) => {
  const { sources } = stack.api;
  const who = await stack.customer({ money: 0 });
  for (let each = 0; each < 20; each++) {
    clock.forward(1);
    await open(who, `place ${each}`);
  }
  clock.forward(1);
  await open(who, 'place 0');
  await open(who, 'place 20');
  const known = (source: string) => sources.isKnown(who.accountId, source, clock.now());
  t.true(await known('place 0'), 'used again');
  t.false(await known('place 1'));
  t.true(await known('place 2'));
  t.true(await known('place 20'));
});

test.serial('no address and no name of it stands in the table of known sources', async (t) => {
  const [one, two] = [await stack.customer({ money: 0 }), await stack.customer({ money: 0 })];
  await open(one, 'one roof');
  await open(two, 'one roof');
  const rows = await stack.api
    .db('known_sources')
    .whereIn('account_id', [idBytes(one.accountId), idBytes(two.accountId)]);
  const names = rows.map(({ source }) => source.toString('hex'));
  t.is(new Set(names).size, names.length, 'two accounts at one address have nothing in common');
  t.false(names.includes(createHash('sha256').update('one roof').digest('hex')));
});
