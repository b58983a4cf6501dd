// API keys: their form, their checksum, and when they may be used.
import test from 'ava';
import { isKeyText, isUsable, keyFacts, keyHash, newKeyText } from '../../lib/keys/rules.ts';

for (const mode of ['live', 'test'] as const) {
  test(`a ${mode} key is sk_${mode}_tsr_, 32 characters and a checksum, and no two are alike`, (t) => {
    const keys = Array.from({ length: 500 }, () => newKeyText(mode));
    t.is(new Set(keys).size, keys.length);
    for (const key of keys) {
      t.regex(key, new RegExp(`^sk_${mode}_tsr_[0-9A-Za-z]{38}$`));
      t.true(isKeyText(key));
    }
    t.is(new Set(keys.map((key) => keyHash(key).toString('hex'))).size, keys.length);
  });
}

test('every single mistyped character, and two swapped ones, are noticed', (t) => {
  const key = newKeyText('live');
  for (let at = 0; at < key.length; at++) {
    for (const typed of ['0', 'z', 'A', '_', ' ']) {
      if (key[at] === typed) continue;
      t.false(isKeyText(key.slice(0, at) + typed + key.slice(at + 1)), `${at} ${typed}`);
    }
    const [one = '', two = ''] = [key[at], key[at + 1]];
    if (one === two || two === '') continue;
    t.false(isKeyText(key.slice(0, at) + two + one + key.slice(at + 2)), `swapped at ${at}`);
  }
});

test('what has another form is no key', (t) => {
  const key = newKeyText('test');
  for (const wrong of [
    '',
    'sk_',
    key.slice(1),
    `${key}0`,
    ` ${key}`,
    `${key}\n`,
    key.slice(0, -1),
  ]) {
    t.false(isKeyText(wrong), JSON.stringify(wrong));
  }
});

test('what is shown of a key is its prefix and last four; what is stored is its SHA-256', (t) => {
  const key = newKeyText('live');
  t.deepEqual(keyFacts(key, 'live'), { prefix: 'sk_live_tsr_', last4: key.slice(-4) });
  t.is(keyHash(key).length, 32);
  t.false(keyHash(key).toString('latin1').includes(key));
});

test('a key is usable until it is revoked or its time has come', (t) => {
  t.true(isUsable({ expiresAt: null, revokedAt: null }, 1_000));
  t.true(isUsable({ expiresAt: 1_001, revokedAt: null }, 1_000));
  t.false(isUsable({ expiresAt: 1_000, revokedAt: null }, 1_000));
  t.false(isUsable({ expiresAt: null, revokedAt: 5_000 }, 1_000));
});
