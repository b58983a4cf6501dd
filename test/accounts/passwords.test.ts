// Passwords: bounded hashing, equal work for unknown accounts, renewal of old parameters, and what is refused.
import { hash } from '@node-rs/argon2';
import test from 'ava';
import { requireGoodPassword } from '../../lib/accounts/password-policy.ts';
import { createPasswords } from '../../lib/accounts/passwords.ts';

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
  const passwords = createPasswords();
  const stored = await passwords.hash('one of many');
  const all = await Promise.allSettled(
    Array.from({ length: 70 }, () => passwords.check(stored, 'one of many')),
  );
  const refused = all.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  t.is(refused.length, 70 - 65);
  for (const { reason } of refused) t.like(reason, { code: 'SERVICE_UNAVAILABLE' });
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
