// Ids and phone numbers: they carry their time, sort by it, and tell what is none of them.
import test from 'ava';
import {
  derivedId,
  fromMessageId,
  idBytes,
  idText,
  idTime,
  newId,
  toMessageId,
} from '../../lib/kernel/ids.ts';
import { toUsd } from '../../lib/kernel/money.ts';
import { e164Pattern, maskPhone, phoneFacts } from '../../lib/kernel/phone.ts';
import { createRecipientKeys } from '../../lib/kernel/recipients.ts';

test('ids are UUIDv7: unique, in order, with their time', (t) => {
  const before = Date.now();
  const ids = Array.from({ length: 2_000 }, newId);
  t.is(new Set(ids).size, ids.length);
  t.deepEqual(ids.toSorted(), ids);
  for (const id of ids) {
    t.is(idText(idBytes(id)), id);
    t.is(idBytes(id).length, 16);
    t.is(fromMessageId(toMessageId(id)), id);
  }
  const time = idTime(ids[0] ?? '');
  t.true(time >= before - 1 && time <= Date.now() + 1);
});

test('only a message_id is one', (t) => {
  const id = newId();
  for (const wrong of [
    ...['', 'otp_', id, `OTP_${id}`, `otp_${id.toUpperCase()}`, `otp_${id} `, ` otp_${id}`],
    ...[`otp_${id}x`, `otp_${id.replaceAll('-', '')}`, `otp_${id.slice(0, 14)}4${id.slice(15)}`],
    ...['otp_otp_', `otp_${'0'.repeat(36)}`, `otp_${id}\n`],
  ]) {
    t.is(fromMessageId(wrong), undefined, wrong);
  }
});

test('the same words give the same id, other words or other breaks another', (t) => {
  t.is(derivedId('a', 'b'), derivedId('a', 'b'));
  t.regex(derivedId('a'), /^[0-9a-f]{32}$/);
  t.not(derivedId('a', 'b'), derivedId('ab'));
  t.not(derivedId('a', 'b'), derivedId('b', 'a'));
});

test('E.164 is a plus, a digit from 1, and 6 to 14 more', (t) => {
  for (const good of ['+1234567', '+123456789012345', '+14155550123', '+201012345678']) {
    t.regex(good, e164Pattern);
  }
  for (const bad of [
    '+123456',
    '+1234567890123456',
    '+0123456789',
    '1234567',
    '+1234567\n',
    '+1 234567',
    '+١٢٣٤٥٦٧',
  ]) {
    t.notRegex(bad, e164Pattern, bad);
  }
});

test('a number’s country, kind and plausibility, again and again', (t) => {
  for (let again = 0; again < 2; again++) {
    t.like(phoneFacts('+201012345678'), { country: 'EG', kind: 'MOBILE', possible: true });
    t.like(phoneFacts('+19005550123'), { country: 'US', kind: 'PREMIUM_RATE' });
    t.like(phoneFacts('+99912345678'), { country: 'ZZ', possible: false });
    t.like(phoneFacts('+1415555'), { possible: false });
  }
});

test('a mask shows the first four digits and the last two, and never the rest', (t) => {
  t.is(maskPhone('+201012345667'), '+2010******67');
  t.is(maskPhone('+1234567'), '+1234*67');
  for (const phone of ['+1234567', '+123456789012345']) t.is(maskPhone(phone).length, phone.length);
});

test('recipient keys tell accounts, modes and phones apart, and show none of them', (t) => {
  const keys = createRecipientKeys({ id: 'p', key: Buffer.alloc(32, 7) });
  const phone = '+14155550123';
  const all = [
    keys.ofPhone(phone),
    keys.ofPhone('+14155550124'),
    keys.ofRecipient('a', 'live', phone),
    keys.ofRecipient('b', 'live', phone),
    keys.ofRecipient('a', 'test', phone),
    createRecipientKeys({ id: 'p', key: Buffer.alloc(32, 8) }).ofPhone(phone),
  ];
  t.is(new Set(all).size, all.length);
  for (const key of all) t.regex(key, /^[0-9a-f]{32}$/);
  t.is(keys.ofPhone(phone), all[0] ?? '');
});

test('money leaves as USD with at most six decimals, and nothing but whole micro-USD', (t) => {
  t.is(toUsd(2_000), 0.002);
  t.is(toUsd(1), 0.000001);
  t.is(toUsd(-2_000_000), -2);
  t.is(JSON.stringify(toUsd(123_456_789)), '123.456789');
  for (const wrong of [0.5, Number.NaN, Infinity, 2 ** 60]) {
    t.throws(() => toUsd(wrong), { instanceOf: RangeError });
  }
});
