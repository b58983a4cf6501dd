// The control API of the simulated WhatsApp: statuses by hand, templates, accounts, limits and the webhook handshake.
import { randomInt } from 'node:crypto';
import { request } from 'undici';
import { Refusal, type Route, type RouteCall } from './http.ts';
import { type Phones, parsePhone } from './phones.ts';
import type { Turnstile } from './turnstile.ts';
import type { Accounts, Business } from './whatsapp-accounts.ts';
import { isKnownError } from './whatsapp-errors.ts';
import type { Faults } from './whatsapp-faults.ts';
import type { LimitSettings, WhatsAppLimits } from './whatsapp-limits.ts';
import { type Review, reviews, type Templates, templateEvents } from './whatsapp-templates.ts';
import type { Status, WhatsAppWebhooks } from './whatsapp-webhooks.ts';

type Deps = {
  phones: Phones;
  accounts: Accounts;
  templates: Templates;
  webhooks: WhatsAppWebhooks;
  limits: WhatsAppLimits;
  faults: Faults;
  turnstile: Turnstile;
  verifyToken: string;
  apiUrl(): string;
};

const text = (value: unknown, name: string): string | undefined => {
  if (value === undefined || typeof value === 'string') return value;
  throw new Refusal(400, `${name} must be text.`);
};

const statuses: readonly string[] = ['sent', 'delivered', 'read', 'failed'];

const reportStatus = ({ phones, webhooks }: Deps, { params, body }: RouteCall) => {
  const message = phones.open(parsePhone(params.phone ?? '')).lastSent;
  if (!message) throw new Refusal(404, 'Nothing was accepted for this phone yet.');
  const { status, code = 131026 } = body;
  if (typeof status !== 'string' || !statuses.includes(status)) {
    throw new Refusal(400, `status must be one of ${statuses.join(', ')}.`);
  }
  if (typeof code !== 'number') throw new Refusal(400, 'code must be a number.');
  webhooks.status({
    message,
    status: status as Status['status'],
    code: status === 'failed' ? code : undefined,
  });
  return { id: message.wamid, status };
};

const flipTemplates = ({ templates }: Deps, { params, body }: RouteCall) => {
  const { event } = body;
  if (typeof event !== 'string' || !templateEvents.includes(event)) {
    throw new Refusal(400, `event must be one of ${templateEvents.join(', ')}.`);
  }
  const language = text(body.language, 'language');
  const found = templates
    .list(text(body.waba_id, 'waba_id'))
    .filter((one) => one.name === params.name && (!language || one.language === language));
  if (found.length === 0) throw new Refusal(404, `There is no template ${params.name}.`);
  for (const template of found)
    templates.flip(template, event, text(body.reason, 'reason') ?? null);
  const shown = found.map(({ id, name, language: of, status }) => ({
    id,
    name,
    language: of,
    status,
  }));
  return { templates: shown };
};

const createBusiness = ({ accounts }: Deps, { body }: RouteCall) => {
  const wabaId = text(body.waba_id, 'waba_id');
  const phoneNumberId = text(body.phone_number_id, 'phone_number_id');
  const name = text(body.name, 'name');
  const accessToken = text(body.access_token, 'access_token');
  const digits = text(body.digits, 'digits');
  if (phoneNumberId && accounts.number(phoneNumberId)) {
    throw new Refusal(409, 'This phone_number_id exists already.');
  }
  const { business, number } = accounts.create({
    ...(wabaId === undefined ? {} : { wabaId }),
    ...(phoneNumberId === undefined ? {} : { phoneNumberId }),
    ...(name === undefined ? {} : { name }),
    ...(digits === undefined ? {} : { digits }),
    registered: body.registered === true,
    subscribed: body.subscribed === true,
  });
  const token = accessToken ?? accounts.issueToken(business);
  if (accessToken) accounts.addToken(business, accessToken);
  return {
    waba_id: business.wabaId,
    phone_number_id: number.id,
    display_phone_number: number.digits,
    access_token: token,
    code: accounts.issueCode(business),
  };
};

const businessOf = ({ accounts }: Deps, { params }: RouteCall): Business => {
  const business = accounts.business(params.waba ?? '');
  if (!business) throw new Refusal(404, 'There is no such account.');
  return business;
};

const changeBusiness = (deps: Deps, call: RouteCall) => {
  const business = businessOf(deps, call);
  const { fault, subscribed } = call.body;
  if (fault !== undefined) {
    const sound = fault === null || (typeof fault === 'number' && isKnownError(fault));
    if (!sound) throw new Refusal(400, 'fault must be null or a known error code.');
    business.fault = fault as number | null;
  }
  if (typeof subscribed === 'boolean') business.subscribed = subscribed;
  return { waba_id: business.wabaId, fault: business.fault, subscribed: business.subscribed };
};

const updateAccount = (deps: Deps, call: RouteCall) => {
  const business = businessOf(deps, call);
  const { event, ban_info: ban } = call.body;
  if (typeof event !== 'string') throw new Refusal(400, 'event is required.');
  const state = (ban as { waba_ban_state?: unknown } | undefined)?.waba_ban_state;
  if (event === 'DISABLED_UPDATE' && state === 'DISABLE') business.fault = 368;
  if (event === 'DISABLED_UPDATE' && state === 'REINSTATE') business.fault = null;
  deps.webhooks.field(business, 'account_update', call.body);
  return { waba_id: business.wabaId, fault: business.fault };
};

const setLimits = ({ limits }: Deps, { body }: RouteCall) => {
  const { pair, throughput_per_second: rate } = body;
  const change: Partial<LimitSettings> = {};
  if (typeof pair === 'boolean') change.pair = pair;
  if (rate !== undefined) {
    const sound = rate === null || (typeof rate === 'number' && rate >= 1);
    if (!sound) throw new Refusal(400, 'throughput_per_second must be null or at least 1.');
    change.throughputPerSecond = rate as number | null;
  }
  const now = limits.set(change);
  return { pair: now.pair, throughput_per_second: now.throughputPerSecond };
};

const setReview = ({ templates }: Deps, { body }: RouteCall) => {
  const { review } = body;
  if (typeof review !== 'string' || !reviews.includes(review)) {
    throw new Refusal(400, `review must be one of ${reviews.join(', ')}.`);
  }
  templates.setReview(review as Review);
  return { review };
};

// What Meta does when the callback is configured (reference 02 section 4.1).
const shakeHands = async ({ apiUrl, verifyToken }: Deps, { body }: RouteCall) => {
  const challenge = String(randomInt(1e9, 2e9));
  const query = new URLSearchParams({
    'hub.mode': 'subscribe',
    'hub.challenge': challenge,
    'hub.verify_token': text(body.verify_token, 'verify_token') ?? verifyToken,
  });
  try {
    const answer = await request(`${apiUrl()}/v1/inbound/whatsapp?${query}`);
    const echoed = await answer.body.text();
    return {
      status: answer.statusCode,
      verified: answer.statusCode === 200 && echoed === challenge,
    };
  } catch {
    throw new Refusal(502, 'The callback cannot be reached.');
  }
};

/** The routes of the simulated WhatsApp and Turnstile that tests turn. */
export const whatsappControlRoutes = (deps: Deps): Route[] => {
  const route = (
    method: string,
    path: string,
    run: (deps: Deps, call: RouteCall) => unknown,
  ): Route => ({ method, path, handle: (call) => run(deps, call) });
  return [
    route('POST', '/phones/:phone/status', reportStatus),
    route('POST', '/templates/:name/status', flipTemplates),
    route('PUT', '/templates/review', setReview),
    route('PUT', '/limits', setLimits),
    route('PUT', '/management/faults', ({ faults }, { body }) => ({ faults: faults.set(body) })),
    route('POST', '/businesses', createBusiness),
    route('PATCH', '/businesses/:waba', changeBusiness),
    route('POST', '/businesses/:waba/code', (_, call) => ({
      code: deps.accounts.issueCode(businessOf(deps, call)),
    })),
    route('POST', '/businesses/:waba/account-update', updateAccount),
    route('DELETE', '/businesses/:waba/tokens', (_, call) => {
      deps.accounts.revokeTokens(businessOf(deps, call));
      return {};
    }),
    route('POST', '/handshake', shakeHands),
    route('POST', '/turnstile/tokens', () => ({ token: deps.turnstile.issue() })),
  ];
};
