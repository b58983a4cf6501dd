// Phone numbers: the contract's E.164 form, their country, and the mask people may see in logs.
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** Spec section 1: a plus sign, a first digit 1-9, then 6 to 14 more digits. */
export const e164Pattern = /^\+[1-9]\d{6,14}$/;

/** `canonical` is the E.164 form of the number: what was sent, unless that holds a national prefix. */
export type PhoneFacts = {
  country: string;
  kind: string | undefined;
  possible: boolean;
  canonical: string;
};

const remembered = new Map<string, PhoneFacts>();
const rememberedMax = 10_000;

/** A number may hold its national prefix more than once: `+1 1 1 415…`. */
const canonicalRounds = 4;

/** Parses until nothing more is stripped, so that the form that is suggested is one that is taken. */
const canonicalOf = (phone: string, parsed: string): string => {
  let [before, after] = [phone, parsed];
  for (let round = 0; round < canonicalRounds && after !== before; round++) {
    [before, after] = [after, parsePhoneNumberFromString(after)?.number ?? after];
  }
  return after;
};

const readFacts = (phone: string): PhoneFacts => {
  const parsed = parsePhoneNumberFromString(phone);
  return {
    country: parsed?.country ?? 'ZZ',
    kind: parsed?.getType(),
    possible: parsed?.isPossible() ?? false,
    canonical: canonicalOf(phone, parsed?.number ?? phone),
  };
};

/**
 * Country (ISO 3166, ZZ when unknown), number type, plausibility and canonical form of an E.164 number. A number that
 * cannot be parsed is its own canonical form.
 */
export const phoneFacts = (phone: string): PhoneFacts => {
  const known = remembered.get(phone);
  if (known) return known;
  const facts = readFacts(phone);
  // Parsing costs more than the rest of a request; the same numbers come again (resends, verifies).
  if (remembered.size >= rememberedMax) remembered.clear();
  remembered.set(phone, facts);
  return facts;
};

const brazilWithoutNinth = /^\+55([1-9]\d)([6-9]\d{7})$/;
const argentinaWithoutNine = /^\+54([1-8]\d{9})$/;

/**
 * The number that stands for everybody whom WhatsApp reaches under either of two forms: Brazilian mobile numbers with
 * and without the ninth digit (landlines begin with 2 to 5 and keep their form), Argentine numbers with and without
 * the 9 of mobiles. Limits count by it; a code belongs to the number as it was sent.
 */
export const reachedAs = (phone: string): string =>
  phone.replace(brazilWithoutNinth, '+55$19$2').replace(argentinaWithoutNine, '+549$1');

/** `+2010******67`: enough to recognise, not enough to call. */
export const maskPhone = (phone: string): string =>
  `${phone.slice(0, 5)}${'*'.repeat(Math.max(phone.length - 7, 0))}${phone.slice(-2)}`;
