// The management side of the WhatsApp Cloud API: signup codes, numbers, accounts, subscriptions and templates.
import { type Http, type HttpAnswer, HttpFailure } from '../infra/http.ts';
import { child, parseObject } from './channel.ts';

/** What was asked for when the provider failed. */
export type GraphStep =
  | 'exchange_code'
  | 'read_number'
  | 'read_account'
  | 'list_numbers'
  | 'register'
  | 'subscribe'
  | 'unsubscribe'
  | 'list_templates'
  | 'create_template';

/** `code` is null when Graph gave no answer: a timeout, a cut connection, a proxy's page. */
export type GraphRefusal = {
  step: GraphStep;
  code: number | null;
  subcode: number | undefined;
  transient: boolean;
};

/** A management call that was refused or not answered. Its message holds nothing the caller sent. */
export class GraphFailure extends Error {
  readonly refusal: GraphRefusal;

  constructor(refusal: GraphRefusal, cause?: unknown) {
    super(`${refusal.step}: ${refusal.code === null ? 'no answer' : `code ${refusal.code}`}`, {
      cause,
    });
    this.name = 'GraphFailure';
    this.refusal = refusal;
  }
}

/** A sending number as its owner's token shows it; texts are the provider's own. */
export type NumberFacts = {
  displayPhoneNumber: string | null;
  verifiedName: string | null;
  qualityRating: string;
  /** CONNECTED, PENDING, … */
  status: string;
};

export type TemplateFacts = { name: string; language: string; status: string };

type Json = Record<string, unknown>;
type Call = {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  token?: string;
  query?: Record<string, string>;
  json?: unknown;
};

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** What is only shown: how long it may be is Meta's to say, how much of it is kept is ours. */
const shown = (value: unknown, most: number): string | null => text(value)?.slice(0, most) ?? null;

/** A language as Meta's list of them has it. */
export const isLanguage = (value: unknown): value is string =>
  typeof value === 'string' && /^[A-Za-z_]{2,12}$/.test(value);

const objects = (value: unknown): Json[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : [];
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;

const readBody = (step: GraphStep, { status, text: raw }: HttpAnswer): Json => {
  const body = parseObject(raw);
  const error = child(body, 'error');
  const code = numberOf(error?.code);
  if (error && code !== undefined) {
    const subcode = numberOf(error.error_subcode);
    throw new GraphFailure({ step, code, subcode, transient: error.is_transient === true });
  }
  if (body && status >= 200 && status < 300) return body;
  throw new GraphFailure({ step, code: null, subcode: undefined, transient: true });
};

const pagesMax = 20;
const pageSize = '100';

/** The copy-code authentication template (reference 02 section 5). */
const templateOf = (template: { name: string; language: string; ttlSeconds: number }) => ({
  name: template.name,
  language: template.language,
  category: 'AUTHENTICATION',
  message_send_ttl_seconds: template.ttlSeconds,
  components: [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 5 },
    { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }] },
  ],
});

const numberFields = 'id,display_phone_number,verified_name,quality_rating,status';

export type GraphOptions = {
  http: Http;
  baseUrl: string;
  apiVersion: string;
  appId: string;
  appSecret: string;
};

const createCalls = ({ http, baseUrl, apiVersion }: GraphOptions) => {
  const call = async (step: GraphStep, { method, path, token, query, json }: Call) => {
    const search = query ? `?${new URLSearchParams(query)}` : '';
    const request = {
      method,
      url: `${baseUrl}/${apiVersion}/${path}${search}`,
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
      ...(json === undefined ? {} : { json }),
    };
    try {
      return readBody(step, await http.send(request));
    } catch (error) {
      if (!(error instanceof HttpFailure)) throw error;
      throw new GraphFailure({ step, code: null, subcode: undefined, transient: true }, error);
    }
  };

  /** All items of a list, page by page, until `enough` says so. */
  const list = async (step: GraphStep, given: Call, enough: (items: Json[]) => boolean) => {
    const items: Json[] = [];
    let after: string | null = '';
    for (let page = 0; page < pagesMax && after !== null; page++) {
      const query: Record<string, string> = { ...given.query, limit: pageSize };
      if (after !== '') query.after = after;
      const body: Json = await call(step, { ...given, query });
      const data = objects(body.data);
      items.push(...data);
      const cursor = text(child(child(body, 'paging'), 'cursors')?.after);
      after = data.length === 0 || enough(items) ? null : cursor;
    }
    return items;
  };

  return { call, list };
};

type Calls = ReturnType<typeof createCalls>;

const numberCalls = ({ call, list }: Calls) => ({
  readNumber: async (token: string, phoneNumberId: string): Promise<NumberFacts> => {
    const query = { fields: numberFields };
    const body = await call('read_number', { method: 'GET', path: phoneNumberId, token, query });
    return {
      displayPhoneNumber: shown(body.display_phone_number, 40),
      verifiedName: shown(body.verified_name, 512),
      qualityRating: text(body.quality_rating) ?? 'UNKNOWN',
      status: text(body.status) ?? 'UNKNOWN',
    };
  },

  readAccount: async (token: string, wabaId: string): Promise<void> => {
    const query = { fields: 'id,name' };
    await call('read_account', { method: 'GET', path: wabaId, token, query });
  },

  /** Whether the number is one of the account's. */
  holdsNumber: async (token: string, wabaId: string, phoneNumberId: string): Promise<boolean> => {
    const isIt = (items: Json[]) => items.some(({ id }) => String(id) === phoneNumberId);
    const path = `${wabaId}/phone_numbers`;
    const given: Call = { method: 'GET', path, token, query: { fields: 'id' } };
    return isIt(await list('list_numbers', given, isIt));
  },

  /** Registers the number for the Cloud API; `pin` (six digits) becomes its two-step PIN. */
  register: async (token: string, phoneNumberId: string, pin: string): Promise<void> => {
    const json = { messaging_product: 'whatsapp', pin };
    await call('register', { method: 'POST', path: `${phoneNumberId}/register`, token, json });
  },
});

const accountCalls = ({ call, list }: Calls) => ({
  /** Asks for the account's webhooks to come to the token's app. Repeatable. */
  subscribe: async (token: string, wabaId: string): Promise<void> => {
    await call('subscribe', { method: 'POST', path: `${wabaId}/subscribed_apps`, token });
  },

  unsubscribe: async (token: string, wabaId: string): Promise<void> => {
    await call('unsubscribe', { method: 'DELETE', path: `${wabaId}/subscribed_apps`, token });
  },

  /** The account's templates of exactly this name, one per language. */
  listTemplates: async (token: string, wabaId: string, name: string): Promise<TemplateFacts[]> => {
    const query = { name, fields: 'name,language,status' };
    const path = `${wabaId}/message_templates`;
    const found = await list('list_templates', { method: 'GET', path, token, query }, () => false);
    // Whether Meta's filter is exact is not written, so it is applied here again; pages may overlap.
    const named = found.filter((one) => one.name === name && isLanguage(one.language));
    const byLanguage = new Map(named.map((one) => [String(one.language), String(one.status)]));
    return [...byLanguage].map(([language, status]) => ({ name, language, status }));
  },

  /** Creates the template and answers the state it is in: mostly PENDING, sometimes APPROVED at once. */
  createTemplate: async (
    token: string,
    wabaId: string,
    template: { name: string; language: string; ttlSeconds: number },
  ): Promise<string> => {
    const path = `${wabaId}/message_templates`;
    const json = templateOf(template);
    const body = await call('create_template', { method: 'POST', path, token, json });
    return text(body.status) ?? 'PENDING';
  },
});

const signupCalls = ({ call }: Calls, { appId, appSecret }: GraphOptions) => ({
  /** Exchanges a code of Embedded Signup, which lives 30 seconds and is good for once, for a token. */
  exchangeCode: async (code: string): Promise<string> => {
    // Meta documents this call with its parameters in the query; the address is never logged.
    const query = { client_id: appId, client_secret: appSecret, code };
    const body = await call('exchange_code', {
      ...{ method: 'GET', path: 'oauth/access_token', query },
    });
    const token = text(body.access_token);
    if (token) return token;
    throw new GraphFailure({
      ...{ step: 'exchange_code', code: null, subcode: undefined, transient: true },
    });
  },
});

export type WhatsappManagement = ReturnType<typeof createWhatsappManagement>;

/**
 * Management calls at `baseUrl`, version `apiVersion`; `appId` and `appSecret` are those of the app that customers
 * sign up with. Every call throws GraphFailure when it did not succeed.
 */
export const createWhatsappManagement = (options: GraphOptions) => {
  const calls = createCalls(options);
  return { ...signupCalls(calls, options), ...numberCalls(calls), ...accountCalls(calls) };
};
