// Phone numbers: the contract's E.164 form, their country, and the mask people may see in logs.
import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** Spec section 1: a plus sign, a first digit 1-9, then 6 to 14 more digits. */
export const e164Pattern = /^\+[1-9]\d{6,14}$/;

export type PhoneFacts = { country: string; kind: string | undefined; possible: boolean };

const remembered = new Map<string, PhoneFacts>();
const rememberedMax = 10_000;

const readFacts = (phone: string): PhoneFacts => {
  const parsed = parsePhoneNumberFromString(phone);
  return {
    country: parsed?.country ?? 'ZZ',
    kind: parsed?.getType(),
    possible: parsed?.isPossible() ?? false,
  };
};

/** Country (ISO 3166, ZZ when unknown), number type and plausibility of an E.164 number. */
export const phoneFacts = (phone: string): PhoneFacts => {
  const known = remembered.get(phone);
  if (known) return known;
  const facts = readFacts(phone);
  // Parsing costs more than the rest of a request; the same numbers come again (resends, verifies).
  if (remembered.size >= rememberedMax) remembered.clear();
  remembered.set(phone, facts);
  return facts;
};

/** `+2010******67`: enough to recognise, not enough to call. */
export const maskPhone = (phone: string): string =>
  `${phone.slice(0, 5)}${'*'.repeat(Math.max(phone.length - 7, 0))}${phone.slice(-2)}`;
