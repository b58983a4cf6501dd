// Phone numbers in their canonical form, and the two forms under which WhatsApp reaches one recipient.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'ava';
import fc from 'fast-check';
import { type CountryCode, getCountries, getCountryCallingCode } from 'libphonenumber-js/max';
import { e164Pattern, phoneFacts, reachedAs } from '../../lib/kernel/phone.ts';
import { createRecipientKeys, personOf } from '../../lib/kernel/recipients.ts';

const examplesFile = createRequire(import.meta.url).resolve(
  'libphonenumber-js/examples.mobile.json',
);
/** A mobile number of every country, without its country code. */
const examples = JSON.parse(readFileSync(examplesFile, 'utf8')) as Record<string, string>;

const keys = createRecipientKeys({ id: 'k1', key: Buffer.alloc(32, 7) });

const digits = (length: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: length, maxLength: length });

test('a number with a national prefix after its country code is not canonical, and its right form is told', (t) => {
  const table: [string, string][] = [
    ['+4407911123456', '+447911123456'],
    ['+330612345678', '+33612345678'],
    ['+4901512345678', '+491512345678'],
    ['+9710501234567', '+971501234567'],
    ['+789161234567', '+79161234567'],
    ['+55011987654321', '+5511987654321'],
    ['+5401123456789', '+541123456789'],
    ['+9109876543210', '+919876543210'],
    ['+2001012345678', '+201012345678'],
    ['+6208123456789', '+628123456789'],
    ['+9660512345678', '+966512345678'],
    ['+114155550123', '+14155550123'],
  ];
  for (const [sent, canonical] of table) t.is(phoneFacts(sent).canonical, canonical, sent);
});

test('a mobile number of every country is canonical, the sandbox’s numbers are, too', (t) => {
  for (const country of getCountries()) {
    const national = examples[country];
    if (national === undefined) continue;
    const phone = `+${getCountryCallingCode(country as CountryCode)}${national}`;
    t.is(phoneFacts(phone).canonical, phone, country);
  }
  for (const phone of ['+15550104001', '+15550102000', '+99912345678', '+10000000']) {
    t.is(phoneFacts(phone).canonical, phone);
  }
});

test('the form that is told is E.164 and is taken itself', (t) => {
  const callingCode = fc.constantFrom(
    ...new Set(getCountries().map((country) => getCountryCallingCode(country))),
  );
  const sent = fc
    .tuple(callingCode, fc.constantFrom('', '0', '1', '8', '00', '11'), digits(10))
    .map(([code, prefix, rest]) => `+${code}${prefix}${rest.join('')}`.slice(0, 16));
  fc.assert(
    fc.property(sent, (phone) => {
      const { canonical } = phoneFacts(phone);
      t.is(phoneFacts(canonical).canonical, canonical, phone);
      if (canonical !== phone) t.regex(canonical, e164Pattern, phone);
    }),
    { numRuns: 2_000 },
  );
});

test('both WhatsApp forms of a Brazilian mobile and of an Argentine number are one recipient', (t) => {
  const brazil = fc.tuple(
    fc.integer({ min: 11, max: 99 }),
    fc.integer({ min: 6, max: 9 }),
    digits(7),
  );
  fc.assert(
    fc.property(brazil, ([area, first, rest]) => {
      const local = `${first}${rest.join('')}`;
      t.is(reachedAs(`+55${area}${local}`), reachedAs(`+55${area}9${local}`));
    }),
  );
  const argentina = fc.tuple(fc.integer({ min: 1, max: 8 }), digits(9));
  fc.assert(
    fc.property(argentina, ([first, rest]) => {
      const local = `${first}${rest.join('')}`;
      t.is(reachedAs(`+54${local}`), reachedAs(`+549${local}`));
    }),
  );
});

test('a Brazilian landline and numbers of other countries are nobody else', (t) => {
  t.is(reachedAs('+551132654321'), '+551132654321');
  t.not(reachedAs('+551132654321'), reachedAs('+5511932654321'));
  const other = fc
    .tuple(fc.constantFrom('1', '44', '49', '20', '91', '57', '598'), digits(10))
    .map(([code, rest]) => `+${code}${rest.join('')}`);
  fc.assert(fc.property(other, (phone) => t.is(reachedAs(phone), phone)));
});

test('both forms share the keys that limits use, and keep codes of their own', (t) => {
  const [with9, without9] = ['+5541987654321', '+554187654321'];
  t.is(keys.ofPhone(with9), keys.ofPhone(without9));
  const [first, second] = [
    keys.ofRecipient('a', 'live', with9),
    keys.ofRecipient('a', 'live', without9),
  ];
  t.not(first, second);
  t.is(personOf(first), personOf(second));
  t.not(personOf(first), personOf(keys.ofRecipient('b', 'live', with9)));
  t.regex(first, /^[0-9a-f]{32}$/);
});
