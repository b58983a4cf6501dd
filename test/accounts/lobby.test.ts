// The lobby before logins: who is let in when, who is turned away, and that turning away leaves room for the rest.
import test from 'ava';
import sinon from 'sinon';
import { createLobby } from '../../lib/accounts/lobby.ts';

/** Work that ends when it is told to, and says in which order it began. */
const createWork = () => {
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  return {
    begun,
    work: (name: number) => () =>
      new Promise<number>((resolve) => {
        begun.push(name);
        ends.set(name, () => resolve(name));
      }),
    end: (name: number) => ends.get(name)?.(),
  };
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

test.serial('so many are in at once, the rest comes in the order of arrival', async (t) => {
  const lobby = createLobby(2, 3);
  const { begun, work, end } = createWork();
  const all = [1, 2, 3, 4, 5].map((name) => lobby.enter(work(name)));
  await turn();
  t.deepEqual(begun, [1, 2]);
  t.is(lobby.waiting(), 3);
  end(2);
  await all[1];
  await turn();
  t.deepEqual(begun, [1, 2, 3]);
  const [late] = [lobby.enter(work(6))];
  for (const name of [1, 3, 4, 5, 6]) {
    end(name);
    await turn();
  }
  t.deepEqual(begun, [1, 2, 3, 4, 5, 6], 'whoever comes later does not pass');
  t.deepEqual(await Promise.all([...all, late]), [1, 2, 3, 4, 5, 6]);
});

test.serial('work that fails leaves its place, too', async (t) => {
  const lobby = createLobby(1, 1);
  await t.throwsAsync(lobby.enter(() => Promise.reject(new Error('no'))));
  t.is(await lobby.enter(() => Promise.resolve('next')), 'next');
  t.is(lobby.waiting(), 0);
});

test.serial(
  'whoever does not fit in is told to come back, and not all at the same time',
  async (t) => {
    const lobby = createLobby(1, 2);
    const { work } = createWork();
    const waits = new Set<unknown>();
    for (let visitor = 0; visitor < 3; visitor++) void lobby.enter(work(visitor));
    const refused = await Promise.allSettled(
      Array.from({ length: 100 }, () => lobby.enter(work(9))),
    );
    for (const one of refused) {
      const { reason } = one as PromiseRejectedResult;
      t.is(reason.code, 'SERVICE_UNAVAILABLE');
      waits.add(reason.extras.retry_after_seconds);
    }
    t.deepEqual([...waits].sort(), [2, 3, 4, 5]);
  },
);

test.serial('between those who are turned away the event loop goes on', async (t) => {
  const lobby = createLobby(1, 0);
  const { work } = createWork();
  void lobby.enter(work(0));
  let told = 0;
  const refused = Array.from({ length: 100 }, () =>
    lobby.enter(work(1)).catch(() => {
      told += 1;
    }),
  );
  const seen: number[] = [];
  while (told < 100) {
    await turn();
    seen.push(told);
  }
  await Promise.all(refused);
  const steps = seen.map((count, at) => count - (seen[at - 1] ?? 0));
  t.true(Math.max(...steps) <= 4, `${steps}`);
});

test.serial(
  'while others wait a place rests behind its work, and what is done is told at once',
  async (t) => {
    const clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    t.teardown(() => clock.restore());
    const lobby = createLobby(1, 3, { rest: 1 });
    const { begun, work, end } = createWork();
    const all = [1, 2].map((name) => lobby.enter(work(name)));
    await turn();
    clock.tick(40);
    end(1);
    t.is(await all[0], 1);
    clock.tick(39);
    await turn();
    t.deepEqual(begun, [1]);
    clock.tick(1);
    await turn();
    t.deepEqual(begun, [1, 2]);
    end(2);
    await all[1];
    void lobby.enter(work(3));
    await turn();
    t.deepEqual(begun, [1, 2, 3], 'nobody waited: nobody has to');
    end(3);
  },
);
