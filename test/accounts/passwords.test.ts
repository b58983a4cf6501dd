// Passwords: bounded hashing in a process that may die, renewal of old parameters, and what is refused.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { hash } from '@node-rs/argon2';
import test from 'ava';
import { createHasher, startHashing } from '../../lib/accounts/hasher.ts';
import { requireGoodPassword } from '../../lib/accounts/password-policy.ts';
import { createPasswords } from '../../lib/accounts/passwords.ts';
import { eventually } from '../support/stack.ts';

test('a password matches its own hash and no other', async (t) => {
  const passwords = createPasswords();
  const stored = await passwords.hash('one of many');
  t.regex(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  t.deepEqual(await passwords.check(stored, 'one of many'), { matches: true, renewed: undefined });
  t.false((await passwords.check(stored, 'One of many')).matches);
  t.false((await passwords.check(undefined, 'nobody has this password')).matches);
});

test('a hash of other parameters is renewed when its password was right', async (t) => {
  const passwords = createPasswords();
  const old = await hash('one of many', { memoryCost: 8 * 1024, timeCost: 1, parallelism: 1 });
  t.is((await passwords.check(old, 'wrong')).renewed, undefined);
  const { renewed } = await passwords.check(old, 'one of many');
  t.true((await passwords.check(renewed, 'one of many')).matches);
});

test('64 wait for a hash; the next is told to come back', async (t) => {
  const never = new Promise<never>(() => undefined);
  const passwords = createPasswords({ run: () => never, close: () => undefined });
  for (let waiting = 0; waiting < 65; waiting++) void passwords.check('stored', 'one of many');
  t.is(passwords.waiting(), 64);
  await t.throwsAsync(passwords.check('stored', 'one of many'), { code: 'SERVICE_UNAVAILABLE' });
});

/** A hasher, and the processes it has started. */
const watched = () => {
  const started: ChildProcess[] = [];
  const hasher = createHasher(() => {
    const child = startHashing();
    started.push(child);
    return child;
  });
  return { started, hasher };
};

test('a hash whose process dies is refused, and another process makes the next', async (t) => {
  const { started, hasher } = watched();
  t.teardown(hasher.close);
  const stored = await hasher.run('hash', 'one of many');
  const cut = hasher.run('hash', 'another one');
  started[0]?.kill('SIGKILL');
  const { extras } = (await t.throwsAsync(cut, { code: 'SERVICE_UNAVAILABLE' })) as never;
  t.like(extras, { retry_after_seconds: 1 });
  t.true(await hasher.run('verify', { against: stored, password: 'one of many' }));
  t.is(started.length, 2);
  // Killed between two hashes, it is not even noticed.
  const second = started[1] as ChildProcess;
  second.ref();
  second.kill('SIGKILL');
  await once(second, 'exit');
  t.true(await hasher.run('verify', { against: stored, password: 'one of many' }));
});

test('what cannot be hashed is an error, and the process goes on', async (t) => {
  const { started, hasher } = watched();
  t.teardown(hasher.close);
  await t.throwsAsync(hasher.run('verify', { against: 'no hash', password: 'x' }));
  t.false(await hasher.run('verify', { against: await hasher.run('hash', 'y'), password: 'x' }));
  t.is(started.length, 1);
});

test('the process that hashes has the priority of any other and knows no secret', async (t) => {
  const { started, hasher } = watched();
  t.teardown(hasher.close);
  await hasher.run('hash', 'one of many');
  const pid = started[0]?.pid ?? 0;
  t.is(getPriority(pid), getPriority());
  if (process.platform !== 'linux') return;
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  t.deepEqual(
    environment.filter((each) => !each.startsWith('NODE_CHANNEL_')),
    [],
  );
});

test('a process that hashes ends with whoever started it', async (t) => {
  const program = `
    import { createHasher, startHashing } from ${JSON.stringify(import.meta.resolve('../../lib/accounts/hasher.ts'))};
    const child = startHashing();
    await createHasher(() => child).run('hash', 'one of many');
    console.log(child.pid);
    setInterval(() => undefined, 1_000);`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program]);
  const [pid] = await once(parent.stdout, 'data');
  parent.kill('SIGKILL');
  await eventually(t, () => {
    try {
      process.kill(Number(pid), 0);
      return undefined;
    } catch {
      return true;
    }
  });
  t.pass();
});

const refused = async (password: string, company: string | null = null): Promise<boolean> => {
  const context = { email: 'ada.lovelace@example.com', company };
  return requireGoodPassword('password', password, context).then(
    () => false,
    () => true,
  );
};

test('the commonest passwords and words everybody knows of the account are refused', async (t) => {
  for (const weak of ['password', 'QWERTYUIOP', 'iloveyou', 'ada.lovelace', 'Tessera2026!']) {
    t.true(await refused(weak), weak);
  }
  t.true(await refused('Engines99', 'engines'));
  t.false(await refused('engines drive the analytical mill', 'engines'));
  t.false(await refused('пароль из многих слов'));
  t.false(await refused('aaaaaaab7 '), 'no rules of composition');
});

test('a password known from leaks is refused, however far down the list it stands', async (t) => {
  for (const leaked of ['letmein123', 'Ronaldo123', '1q3e5t7u9o']) {
    t.true(await refused(leaked), leaked);
  }
});
