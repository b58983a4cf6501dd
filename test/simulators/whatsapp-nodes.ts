// Nodes of the Graph simulator: numbers, accounts, templates and the exchange of signup codes (reference 02 sections 5 and 6).
import type { JsonObject } from './http.ts';
import type { Accounts, Business } from './whatsapp-accounts.ts';
import { GraphFailure, unknownObject } from './whatsapp-errors.ts';
import {
  businessFields,
  healthOf,
  numberFields,
  pickFields,
  templateFields,
} from './whatsapp-reads.ts';
import type { Templates } from './whatsapp-templates.ts';

export type GraphCall = {
  business: Business;
  id: string;
  edge: string;
  input: JsonObject;
  query: URLSearchParams;
};

const success = { success: true };

/** Our app at Meta, and what it hears of. */
const appId = '670843887433847';
const heardFields = [
  ...['messages', 'message_template_status_update'],
  ...['phone_number_quality_update', 'account_update'],
];

export type WhatsAppNodes = ReturnType<typeof createWhatsAppNodes>;

/** Creates the nodes. Calls throw GraphFailure; an answer that is no object means there is no such node. */
export const createWhatsAppNodes = (deps: {
  accounts: Accounts;
  templates: Templates;
  appSecret: string;
  apiUrl(): string;
}) => {
  const { accounts, templates } = deps;

  /** What the app hears of, and where: asked with its own token, `id|secret`. */
  const subscriptions = (id: string, token: string | undefined) => {
    if (id !== appId || token !== `${id}|${deps.appSecret}`) throw new GraphFailure(190);
    const fields = heardFields.map((name) => ({ name, version: 'v25.0' }));
    const callback_url = `${deps.apiUrl()}/v1/inbound/whatsapp`;
    return { data: [{ object: 'whatsapp_business_account', callback_url, active: true, fields }] };
  };

  const exchangeCode = ({ code, client_id: id, client_secret: secret }: JsonObject) => {
    if (!id) throw new GraphFailure(100, { message: 'Missing client_id parameter.' });
    if (secret !== deps.appSecret) {
      throw new GraphFailure(1, { message: 'Error validating client secret.' });
    }
    if (typeof code !== 'string')
      throw new GraphFailure(100, { message: 'Missing code parameter.' });
    const business = accounts.redeemCode(code);
    return { access_token: accounts.issueToken(business), token_type: 'bearer' };
  };

  const register = (call: GraphCall) => {
    const number = accounts.number(call.id);
    const { pin, messaging_product: product } = call.input;
    if (product !== 'whatsapp') throw new GraphFailure(100, { details: 'messaging_product' });
    if (typeof pin !== 'string' || !/^\d{6}$/.test(pin)) {
      throw new GraphFailure(100, { details: 'pin must be six digits.' });
    }
    if (!number) throw unknownObject(call.id, 'post');
    if (number.pin !== undefined && number.pin !== pin) throw new GraphFailure(133005);
    number.pin = pin;
    number.registered = true;
    return success;
  };

  const numberCall = (method: string, call: GraphCall): unknown => {
    const number = accounts.number(call.id);
    if (!number) return undefined;
    const { business } = call;
    if (number.wabaId !== business.wabaId) throw unknownObject(call.id, method.toLowerCase());
    const operation = `${method} ${call.edge}`;
    if (operation === 'GET ') {
      return pickFields(numberFields(number, business), call.query.get('fields'), [
        ...['verified_name', 'display_phone_number', 'quality_rating'],
      ]);
    }
    if (operation === 'POST register') return register(call);
    if (operation === 'POST deregister') {
      number.registered = false;
      return success;
    }
    return undefined;
  };

  const listTemplates = ({ business, query }: GraphCall) => {
    // Whether Meta's `name` filter is exact is not written: here it is a part of the name, the harder case.
    const name = query.get('name') ?? '';
    const all = templates.list(business.wabaId).filter((one) => one.name.includes(name));
    const limit = Math.min(Math.max(Number(query.get('limit') ?? 25) || 25, 1), 100);
    const start = Number(Buffer.from(query.get('after') ?? '', 'base64').toString()) || 0;
    const cursor = (index: number) => Buffer.from(String(index)).toString('base64');
    const end = Math.min(start + limit, all.length);
    const data = all
      .slice(start, end)
      .map((one) =>
        pickFields(templateFields(one), query.get('fields'), Object.keys(templateFields(one))),
      );
    const cursors = { before: cursor(start), after: cursor(end) };
    return { data, ...(data.length > 0 ? { paging: { cursors } } : {}) };
  };

  const subscribedApps = ({ business }: GraphCall) => ({
    data: business.subscribed
      ? [
          {
            whatsapp_business_api_data: {
              id: appId,
              name: 'Tessera',
              link: 'https://example.com',
            },
          },
        ]
      : [],
  });

  const subscribe = ({ business, input }: GraphCall) => {
    if (input.override_callback_uri !== undefined) {
      throw new GraphFailure(100, { details: 'override_callback_uri is not simulated.' });
    }
    business.subscribed = true;
    return success;
  };

  const businessEdges: Record<string, (call: GraphCall) => unknown> = {
    'GET ': ({ business, query }) =>
      pickFields(businessFields(business), query.get('fields'), [
        ...['name', 'timezone_id', 'message_template_namespace'],
      ]),
    'GET phone_numbers': ({ business, query }) => ({
      data: business.numbers.map((number) =>
        pickFields(numberFields(number, business), query.get('fields'), [
          ...['verified_name', 'display_phone_number', 'quality_rating'],
        ]),
      ),
    }),
    'GET message_templates': listTemplates,
    'POST message_templates': ({ business, input }) => {
      const { id, status, category } = templates.create(business.wabaId, input);
      return { id, status, category };
    },
    'DELETE message_templates': ({ business, input }) => {
      const id = input.hsm_id === undefined ? undefined : String(input.hsm_id);
      templates.remove(business.wabaId, String(input.name), id);
      return success;
    },
    'GET subscribed_apps': subscribedApps,
    'POST subscribed_apps': subscribe,
    'DELETE subscribed_apps': ({ business }) => {
      business.subscribed = false;
      return success;
    },
  };

  const templateCall = (method: string, call: GraphCall): unknown => {
    const template = call.edge === '' ? templates.byId(call.id) : undefined;
    if (template?.wabaId !== call.business.wabaId) return undefined;
    if (method === 'GET') {
      const fields = { ...templateFields(template), health_status: healthOf(call.business) };
      return pickFields(fields, call.query.get('fields'), [
        'name',
        'language',
        'status',
        'category',
      ]);
    }
    if (method !== 'POST') return undefined;
    templates.edit(template, call.input);
    return success;
  };

  const manage = (method: string, call: GraphCall): unknown => {
    if (call.id === call.business.wabaId) return businessEdges[`${method} ${call.edge}`]?.(call);
    return numberCall(method, call) ?? templateCall(method, call);
  };

  return { call: manage, exchangeCode, subscriptions };
};
