// What is remembered of accounts: for how long, about whom, and what news make of it.
import test from 'ava';
import { createMemory } from '../../lib/keys/memory.ts';
import { createHandClock } from '../support/hand-clock.ts';

const start = (most = 100) => {
  const clock = createHandClock();
  const state = { news: 0, epochs: new Map<string | undefined, number>(), trusted: true };
  const announce = (accountId?: string) => {
    state.epochs.set(accountId, (state.epochs.get(accountId) ?? 0) + 1);
    state.news++;
  };
  const epoch = (accountId?: string) =>
    state.trusted ? String(state.epochs.get(accountId) ?? 0) : undefined;
  const memory = createMemory<{ account: string; text: string } | undefined>({
    ...{ clock, most, revocations: { epoch, news: () => state.news } },
    about: (value) => value?.account,
    keepMs: (value) => (value ? 60_000 : 0),
  });
  return { clock, state, memory, announce };
};

const of = (account: string) => async () => ({ account, text: `of ${account}` });

test('an answer is remembered for its time', async (t) => {
  const { clock, memory } = start();
  t.is(memory.recall('key'), undefined);
  t.like(await memory.learn('key', of('a')), { text: 'of a' });
  clock.forward(59_000);
  t.like(memory.recall('key')?.value, { text: 'of a' });
  clock.forward(1_001);
  t.is(memory.recall('key'), undefined);
  t.like(memory.last('key')?.value, { text: 'of a' });
});

test('news about its account end it, news about another do not', async (t) => {
  const { memory, announce } = start();
  await memory.learn('key', of('a'));
  announce('b');
  t.truthy(memory.recall('key'));
  announce('a');
  t.is(memory.recall('key'), undefined);
});

test('an answer that news may have overtaken is given and not remembered', async (t) => {
  const { memory, announce } = start();
  const answer = await memory.learn('key', async () => {
    announce('a');
    return { account: 'a', text: 'maybe old' };
  });
  t.is(answer?.text, 'maybe old');
  t.is(memory.recall('key'), undefined);
});

test('nothing is remembered or recalled while nothing may be trusted', async (t) => {
  const { memory, state } = start();
  await memory.learn('before', of('a'));
  state.trusted = false;
  t.is(memory.recall('before'), undefined);
  await memory.learn('meanwhile', of('a'));
  state.trusted = true;
  t.truthy(memory.recall('before'));
  t.is(memory.recall('meanwhile'), undefined);
});

test('an answer that holds for no time, and an error, are not remembered; a full memory begins anew', async (t) => {
  const { memory } = start(2);
  await memory.learn('nothing', async () => undefined);
  t.is(memory.last('nothing'), undefined);
  await t.throwsAsync(memory.learn('key', () => Promise.reject(new Error('away'))));
  t.is(memory.recall('key'), undefined);
  for (const account of ['a', 'b', 'c']) await memory.learn(account, of(account));
  t.is(memory.last('a'), undefined);
  t.truthy(memory.recall('c'));
});
