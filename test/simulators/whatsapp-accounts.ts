// WhatsApp business accounts of the simulator: accounts, numbers, tokens and one-time signup codes (reference 02 section 6).
import { randomBytes } from 'node:crypto';
import type { Clock } from './clock.ts';
import { GraphFailure } from './whatsapp-errors.ts';

export type WhatsAppNumber = {
  id: string;
  wabaId: string;
  /** Digits, no plus. */
  digits: string;
  name: string;
  registered: boolean;
  pin: string | undefined;
};

export type Business = {
  wabaId: string;
  businessId: string;
  name: string;
  /** Whether our app gets this account's webhooks. */
  subscribed: boolean;
  /** An error code every send of this account gets, for example 368 after a ban. */
  fault: number | null;
  numbers: WhatsAppNumber[];
  tokens: Set<string>;
};

export type BusinessInput = {
  wabaId?: string;
  phoneNumberId?: string;
  name?: string;
  digits?: string;
  accessToken?: string;
  registered?: boolean;
  subscribed?: boolean;
};

/** Meta: a code of Embedded Signup lives 30 seconds and is good for one exchange. */
const codeLifeMs = 30_000;

const randomDigits = (length: number): string =>
  Array.from(randomBytes(length), (byte, index) =>
    String(index === 0 ? 1 + (byte % 9) : byte % 10),
  ).join('');

type Code = { wabaId: string; expiresAtMs: number; used: boolean };

export type Accounts = ReturnType<typeof createAccounts>;

/** Creates the accounts; `standard` is the shared number's, there from the start and after a reset. */
export const createAccounts = (clock: Clock, standard: Required<BusinessInput>) => {
  const businesses = new Map<string, Business>();
  const numbers = new Map<string, WhatsAppNumber>();
  const tokens = new Map<string, Business>();
  const codes = new Map<string, Code>();

  const addToken = (business: Business, token: string) => {
    business.tokens.add(token);
    tokens.set(token, business);
  };

  const create = (input: BusinessInput): { business: Business; number: WhatsAppNumber } => {
    const wabaId = input.wabaId ?? randomDigits(15);
    const business = businesses.get(wabaId) ?? {
      wabaId,
      businessId: randomDigits(15),
      name: input.name ?? 'Example business',
      subscribed: input.subscribed ?? false,
      fault: null,
      numbers: [],
      tokens: new Set<string>(),
    };
    businesses.set(wabaId, business);
    const number = {
      id: input.phoneNumberId ?? randomDigits(15),
      wabaId,
      digits: input.digits ?? `1555${randomDigits(7)}`,
      name: business.name,
      registered: input.registered ?? false,
      pin: undefined,
    };
    business.numbers.push(number);
    numbers.set(number.id, number);
    if (input.accessToken) addToken(business, input.accessToken);
    return { business, number };
  };

  const reset = () => {
    for (const map of [businesses, numbers, tokens, codes]) map.clear();
    create(standard);
  };
  reset();

  return {
    create,
    reset,
    /** Makes a token valid for an account. */
    addToken,
    business: (wabaId: string): Business | undefined => businesses.get(wabaId),
    number: (id: string): WhatsAppNumber | undefined => numbers.get(id),
    standard: { wabaId: standard.wabaId, phoneNumberId: standard.phoneNumberId },
    /** A new access token of an account. */
    issueToken: (business: Business): string => {
      const token = `EAA${randomBytes(24).toString('base64url')}`;
      addToken(business, token);
      return token;
    },
    /** Makes every token of an account invalid. */
    revokeTokens: (business: Business): void => {
      for (const token of business.tokens) tokens.delete(token);
      business.tokens.clear();
    },
    /** The account a token is for. @throws GraphFailure 190 */
    authorise: (token: string | undefined): Business => {
      const business = token === undefined ? undefined : tokens.get(token);
      if (!business) throw new GraphFailure(190);
      return business;
    },
    /** A code as Embedded Signup hands it to the browser. */
    issueCode: (business: Business): string => {
      const code = `AQ${randomBytes(32).toString('base64url')}`;
      codes.set(code, {
        wabaId: business.wabaId,
        expiresAtMs: clock.now() + codeLifeMs,
        used: false,
      });
      return code;
    },
    /** Exchanges a code. @throws GraphFailure 100 with subcode 36007 when it expired, 36009 when it was used */
    redeemCode: (text: string): Business => {
      const code = codes.get(text);
      const business = code && businesses.get(code.wabaId);
      if (!code || !business) throw new GraphFailure(100, { subcode: 36008 });
      if (code.used) throw new GraphFailure(100, { subcode: 36009 });
      if (code.expiresAtMs < clock.now()) throw new GraphFailure(100, { subcode: 36007 });
      code.used = true;
      return business;
    },
  };
};
