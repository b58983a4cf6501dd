// Authenticator apps: codes of RFC 6238 and of an app of our own, the otpauth address, and the QR code that holds it.
import test from 'ava';
import jsqr from 'jsqr';
import { PNG } from 'pngjs';
import {
  matchStep,
  newSecret,
  otpauthUrl,
  qrDataUri,
  stepAt,
} from '../../lib/kernel/authenticator.ts';
import { appCode } from '../support/authenticator.ts';

/** RFC 6238 appendix B, its SHA-1 column cut to six digits; the secret is "12345678901234567890". */
const rfcSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
const rfcCodes: [number, string][] = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
];

test('the codes of RFC 6238 match at their time, and those of our own app are the same', (t) => {
  for (const [seconds, code] of rfcCodes) {
    const nowMs = seconds * 1000;
    t.is(matchStep({ secret: rfcSecret, code, nowMs }), stepAt(nowMs), code);
    t.is(appCode(rfcSecret, nowMs), code);
  }
});

test('one step of delay and haste is tolerated, two are not', (t) => {
  const secret = newSecret();
  const nowMs = 1_700_000_012_345;
  const match = (steps: number) =>
    matchStep({ secret, code: appCode(secret, nowMs, steps), nowMs });
  t.deepEqual([-2, -1, 0, 1, 2].map(match), [
    ...[undefined, stepAt(nowMs) - 1, stepAt(nowMs), stepAt(nowMs) + 1, undefined],
  ]);
});

test('a secret has 160 bits in base 32', (t) => {
  t.regex(newSecret(), /^[A-Z2-7]{32}$/);
  t.not(newSecret(), newSecret());
});

test('the address holds all five parameters, and no colon inside its parts', (t) => {
  const secret = newSecret();
  const url = otpauthUrl({ issuer: 'Acme: Inc\n', label: '+14155550123', secret });
  t.is(
    url,
    `otpauth://totp/Acme%20Inc:%2B14155550123?secret=${secret}&issuer=Acme%20Inc&algorithm=SHA1&digits=6&period=30`,
  );
  t.regex(otpauthUrl({ issuer: ':::', label: '', secret }), /^otpauth:\/\/totp\/Tessera:account\?/);
});

test('the QR code decodes to exactly the address, in at most 4 kB', async (t) => {
  for (const issuer of ['T', 'Ünïcode & Söhne', 'x'.repeat(200)]) {
    const url = otpauthUrl({ issuer, label: '+14155550123', secret: newSecret() });
    const uri = await qrDataUri(url);
    t.true(uri.length <= 4096, `${uri.length} bytes`);
    const png = PNG.sync.read(Buffer.from(uri.split(',')[1] ?? '', 'base64'));
    const decode = jsqr as unknown as typeof import('jsqr')['default'];
    const read = decode(new Uint8ClampedArray(png.data), png.width, png.height);
    t.is(read?.data, url);
  }
});
