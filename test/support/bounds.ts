// The bounds of every field of the account routes (spec section 2), on both sides: what is taken, what is refused.
import { uniqueName } from './names.ts';
import { aNumber } from './phones.ts';

export type FieldBounds = {
  good: readonly unknown[];
  bad: readonly unknown[];
  /** What a good value is refused with all the same, by whoever looks at it after its form: the form was taken. */
  later?: RegExp;
};

export type RouteBounds = {
  /** Whose credential the call carries. */
  as: 'anybody' | 'session' | 'live' | 'mfa';
  /** The other fields of a call that is in order; `given` is the value that is tried. */
  base: (given: { password: string }) => Record<string, unknown>;
  /** The call is about a simulated business, with the tried value in it, and shows its token or its code. */
  business?: 'access_token' | 'code';
  fields: Record<string, FieldBounds>;
};

export const chars = (length: number, of = 'x'): string => of.repeat(length);

/** An address of so many characters, with labels as long as they may be. */
export const addressOf = (length: number): string => {
  const local = `${uniqueName('m')}`.padEnd(64, 'a').slice(0, 64);
  const rest = length - local.length - '@'.length - '.co'.length;
  const labels = [chars(61, 'b'), chars(61, 'c')].join('.');
  return `${local}@${labels}.${chars(rest - labels.length - 1, 'd')}.co`;
};

const notText = [7, null, true, [], {}];

const text = (min: number, max: number, of?: string): FieldBounds => ({
  good: [chars(min, of), chars(max, of)],
  bad: [chars(min - 1, of), chars(max + 1, of), ...notText],
});

const email: FieldBounds = {
  good: [addressOf(254), addressOf(253)],
  bad: [undefined, '', addressOf(255), 'nobody', 'a@', '@x.co', 'a b@x.co', ...notText],
};

/** Long enough to be no word that everybody tries. */
const password: FieldBounds = {
  good: ['q7#xW2!z', chars(32, 'q7#x')],
  bad: [undefined, 'q7#xW2!', chars(129), '', ...notText],
};

const given = (bounds: FieldBounds): FieldBounds => ({
  ...bounds,
  bad: [undefined, ...bounds.bad],
});

const maybe = (bounds: FieldBounds): FieldBounds => ({
  ...bounds,
  good: [undefined, ...bounds.good],
});

const phone: FieldBounds = {
  good: [aNumber()],
  bad: ['', '0123', '14155550100', '+0123456789', '+123456', '+1234567890123456', ...notText],
};

const company: FieldBounds = {
  good: [undefined, '', 'c', chars(120)],
  bad: [chars(121), 7, true, [], {}],
};
/** Signing up keeps whatever language it is told. */
const anyLocale: FieldBounds = {
  good: ['en', 'ar', 'fr', 'zh-Hant', 'pt-BR', 'العربية', ''],
  bad: [chars(9), '\u0000', ...notText],
};
const locale: FieldBounds = { good: ['en', 'ar'], bad: ['', 'fr', 'EN', 'en-US', ...notText] };
const uuid = '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';

const resetCode: FieldBounds = {
  good: ['00000000', '12345678'],
  bad: [undefined, '123456', '1234567', '123456789', '1234567a', ' 1234567', '', ...notText],
};

// A wrong one of either kind is refused after its form was taken.
const proof: Record<string, FieldBounds> = { password: text(1, 128), code: text(6, 32, '1') };

const turnstileToken: FieldBounds = {
  good: [undefined, 't', chars(4096)],
  bad: [chars(4097), ...notText],
};

const newcomer = () => ({
  ...{ email: `${uniqueName('n')}@tessera.example`, password: 'correct horse battery' },
  ...{ name: 'Ada', phone: aNumber() },
});

const digits = (short: string, long: string): FieldBounds => ({
  good: [short, chars(20, long)],
  bad: ['', chars(21, long), '12a', '-1', ' 1', ...notText],
});

/** By method and path. */
export const accountBounds: Readonly<Record<string, RouteBounds>> = {
  'POST /v1/clients/register': {
    as: 'anybody',
    base: newcomer,
    fields: {
      ...{ email, password, company, phone: given(phone), locale: maybe(anyLocale) },
      name: given(text(1, 100)),
      turnstile_token: turnstileToken,
    },
  },
  'POST /v1/clients/login': {
    as: 'anybody',
    base: () => ({ email: `${uniqueName('n')}@tessera.example`, password: 'not this one' }),
    fields: { email, password, turnstile_token: turnstileToken },
  },
  'POST /v1/clients/password': {
    as: 'session',
    base: ({ password: present }) => ({
      ...{ current_password: present, new_password: 'a fresh long password' },
    }),
    fields: { current_password: given(text(1, 128)), new_password: password },
  },
  'POST /v1/clients/password/forgot': {
    as: 'anybody',
    base: () => ({ email: `${uniqueName('n')}@tessera.example` }),
    fields: { email, turnstile_token: turnstileToken },
  },
  'POST /v1/clients/password/reset': {
    as: 'anybody',
    base: () => ({
      ...{ email: `${uniqueName('n')}@tessera.example`, code: '12345678' },
      new_password: 'a fresh long password',
    }),
    fields: {
      email,
      code: resetCode,
      new_password: password,
      turnstile_token: turnstileToken,
    },
  },
  'PATCH /v1/clients/profile': {
    as: 'session',
    base: () => ({}),
    fields: {
      name: text(1, 100),
      ...{ phone, locale },
      company: { ...company, good: [null, '', 'c', chars(120)] },
    },
  },
  'PATCH /v1/clients/settings': {
    as: 'session',
    base: () => ({}),
    fields: {
      webhook_url: {
        good: [null, 'https://h.example', `https://h.example/${chars(2030)}`],
        bad: [
          ...['', 'https://', 'http://h.example', 'HTTPS://h.example', 'https://h.example/a b'],
          ...[`https://h.example/${chars(2031)}`, 7, true, [], {}],
        ],
      },
      spend_cap_hourly: {
        good: [null, 0, 0.000001, 1_000_000],
        bad: [-0.000001, 1_000_000.000001, 0.0000001, '5', true, [], {}],
      },
      waba_template_language: {
        good: [null, 'ar', 'en_US'],
        bad: ['', 'e', 'eng', 'EN', 'en-US', 'en_us', 'en_U', 'en_USA', 7, true, [], {}],
      },
      keys_manage_account: { good: [false, true], bad: ['', 'true', 0, 1, null, [], {}] },
    },
  },
  'POST /v1/clients/keys': {
    as: 'session',
    base: () => ({ name: 'Shop' }),
    fields: {
      name: given(text(1, 40)),
      mode: { good: [undefined, 'live', 'test'], bad: ['', 'Live', 'both', ...notText] },
    },
  },
  'POST /v1/clients/keys/rotate': {
    as: 'session',
    base: () => ({}),
    fields: {
      id: {
        good: [undefined, uuid, uuid.toUpperCase()],
        bad: ['', uuid.slice(1), `${uuid}0`, uuid.replaceAll('-', ''), `{${uuid}}`, ...notText],
      },
    },
  },
  'POST /v1/clients/connect-whatsapp': {
    as: 'live',
    base: () => ({}),
    business: 'access_token',
    fields: {
      phone_number_id: given(digits('1', '2')),
      waba_id: maybe(digits('3', '4')),
      access_token: {
        good: ['t', chars(4096, 't')],
        bad: [undefined, '', 'a b', chars(4097, 't'), ...notText],
      },
      display_name: { good: [undefined, 'd', chars(512)], bad: [chars(513), ...notText] },
    },
  },
  'POST /v1/clients/waba/embedded-signup': {
    as: 'live',
    base: () => ({}),
    business: 'code',
    fields: {
      phone_number_id: given(digits('5', '6')),
      waba_id: given(digits('7', '8')),
      code: { ...given(text(1, 2048)), later: /is not a code of this signup/ },
    },
  },
  'POST /v1/clients/security/login/mfa': {
    as: 'mfa',
    base: () => ({}),
    fields: { code: given(text(6, 32, '1')) },
  },
  'POST /v1/clients/security/mfa/confirm': {
    as: 'session',
    base: () => ({}),
    fields: { code: given(text(6, 32, '1')) },
  },
  'POST /v1/clients/security/reauth': { as: 'session', base: () => ({}), fields: proof },
  'POST /v1/clients/security/mfa/disable': { as: 'session', base: () => ({}), fields: proof },
  'POST /v1/clients/security/mfa/recovery': { as: 'session', base: () => ({}), fields: proof },
};
