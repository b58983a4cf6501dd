// The lobby before logins: who is let in when, and who is turned away.
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

test.serial(
  'whoever waited too long is told to come back, and the next has the place',
  async (t) => {
    const clock = sinon.useFakeTimers({ toFake: ['performance'] });
    t.teardown(() => clock.restore());
    const lobby = createLobby(1, 3);
    const { begun, work, end } = createWork();
    const first = lobby.enter(work(1));
    const late = [lobby.enter(work(2)), lobby.enter(work(3))];
    await turn();
    clock.tick(7_000);
    const fourth = lobby.enter(work(4));
    t.true(lobby.isFull());
    clock.tick(2_000);
    end(1);
    for (const one of await Promise.allSettled(late)) {
      t.is((one as PromiseRejectedResult).reason.code, 'SERVICE_UNAVAILABLE');
    }
    await turn();
    t.deepEqual(begun, [1, 4]);
    t.false(lobby.isFull());
    end(4);
    t.deepEqual(await Promise.all([first, fourth]), [1, 4]);
    t.is(await lobby.enter(() => Promise.resolve('next')), 'next');
  },
);

test.serial(
  'while others wait a place rests behind its work; what is done is told at once',
  async (t) => {
    const clock = sinon.useFakeTimers({ toFake: ['setTimeout'] });
    t.teardown(() => clock.restore());
    const lobby = createLobby(1, 3, { restMs: 20 });
    const { begun, work, end } = createWork();
    const all = [1, 2].map((name) => lobby.enter(work(name)));
    await turn();
    end(1);
    t.is(await all[0], 1);
    clock.tick(19);
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
