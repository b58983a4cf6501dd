// Sealing, HMACs and comparison: rotation works, and nothing that was touched opens.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import {
  createSealer,
  equalInConstantTime,
  hmacHex,
  type NamedKey,
  randomToken,
  sha256Hex,
} from '../../lib/kernel/secrets.ts';

const named = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const [first, second] = [named('k1'), named('k2')];
const context = { purpose: 'otp-code', record: 'm1' };

test('what is sealed opens again, and never looks the same twice', (t) => {
  const sealer = createSealer([first]);
  for (const text of ['493027', '', 'ü €😀', 'x'.repeat(10_000)]) {
    const sealed = sealer.seal(text, context);
    t.is(sealer.open(sealed, context), text);
    t.not(sealer.seal(text, context), sealed);
    t.regex(sealed, /^v1\.k1\.[A-Za-z0-9_-]+$/);
  }
  t.false(sealer.seal('493027', context).includes('493027'));
});

test('the newest key seals, older ones still open, a removed one does not', (t) => {
  const old = createSealer([first]).seal('493027', context);
  const rotated = createSealer([second, first]);
  t.is(rotated.open(old, context), '493027');
  t.regex(rotated.seal('493027', context), /^v1\.k2\./);
  t.throws(() => createSealer([second]).open(old, context), { message: /unknown key/ });
  t.throws(() => createSealer([named('k1')]).open(old, context), undefined, 'same name, other key');
  t.throws(() => createSealer([]), { message: /at least one key/ });
});

test('another purpose or record does not open it', (t) => {
  const sealer = createSealer([first]);
  const sealed = sealer.seal('493027', context);
  for (const other of [
    { ...context, record: 'm2' },
    { ...context, purpose: 'totp-seed' },
    { purpose: 'otp-code\nm1', record: '' },
    { purpose: 'otp', record: 'code\nm1' },
  ]) {
    t.throws(() => sealer.open(sealed, other));
  }
});

test('with any one bit changed, or cut anywhere, it does not open', (t) => {
  const sealer = createSealer([first]);
  const [format, id, text = ''] = sealer.seal('493027', context).split('.');
  const bytes = Buffer.from(text, 'base64url');
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    t.throws(() => sealer.open(`${format}.${id}.${changed.toString('base64url')}`, context));
    const cut = bytes.subarray(0, at).toString('base64url');
    t.throws(() => sealer.open(`${format}.${id}.${cut}`, context), undefined, `cut at ${at}`);
  }
  for (const wrong of ['', '.', 'v1', 'v1.k1', `v2.k1.${text}`, `v1.k9.${text}`, '493027']) {
    t.throws(() => sealer.open(wrong, context), undefined, wrong.slice(0, 8));
  }
});

test('comparison and hashes are what they say', (t) => {
  t.true(equalInConstantTime('', ''));
  t.true(equalInConstantTime('abc', 'abc'));
  for (const other of ['abd', 'ab', 'abcd', '', 'ABC']) t.false(equalInConstantTime('abc', other));
  t.is(sha256Hex('abc').slice(0, 16), 'ba7816bf8f01cfea');
  // RFC 4231, test case 2.
  t.is(
    hmacHex(Buffer.from('Jefe'), 'what do ya want for nothing?'),
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
  t.is(Buffer.from(randomToken(24), 'base64url').length, 24);
  t.not(randomToken(24), randomToken(24));
});
