// Own WhatsApp numbers: what a connection is, which template it sends with, and what the provider's refusals mean.
import { classifyWhatsappError } from '../channels/whatsapp-errors.ts';
import type { GraphRefusal, GraphStep } from '../channels/whatsapp-management.ts';
import type { FieldIssue } from '../kernel/errors.ts';

/** broken: the provider does not take its token any more, or took the number away; nothing is sent with it. */
export type ConnectionStatus = 'connected' | 'broken';

/** Why a connection is broken. */
export const brokenReasons = [
  'token_invalid',
  'permission_missing',
  'number_not_accessible',
  'account_disabled',
  'app_removed',
] as const;
export type BrokenReason = (typeof brokenReasons)[number];

/** The provider's words in small letters, and two of ours: nobody created it, nobody can know. */
export const templateStatuses = [
  ...['not_created', 'unknown', 'pending', 'approved', 'rejected', 'paused', 'disabled'],
  ...['in_appeal', 'pending_deletion', 'deleted', 'limit_exceeded', 'locked', 'archived'],
] as const;
export type TemplateStatus = string;

export type Template = { name: string; language: string; status: TemplateStatus };

export type Connection = {
  id: string;
  accountId: string;
  phoneNumberId: string;
  /** Null when the customer did not say: then templates cannot be looked after. */
  wabaId: string | null;
  source: 'manual' | 'embedded_signup';
  displayName: string | null;
  displayPhoneNumber: string | null;
  qualityRating: string;
  status: ConnectionStatus;
  brokenAt: number | null;
  brokenReason: BrokenReason | null;
  connectedAt: number;
  templates: Template[];
};

const known = new Set<string>(templateStatuses);
/** Events that are no state of their own: the template can be used (again). */
const usableEvents = new Set(['flagged', 'reinstated', 'unarchived']);

/** The state a word of the provider stands for; one we do not know means that nobody can rely on it. */
export const templateStatusOf = (word: string): TemplateStatus => {
  const status = word.toLowerCase();
  if (usableEvents.has(status)) return 'approved';
  return known.has(status) ? status : 'unknown';
};

const ratings = new Set(['green', 'yellow', 'red']);

/** green, yellow, red, or unknown for everything else the provider says. */
export const qualityOf = (word: string): string => {
  const rating = word.toLowerCase();
  return ratings.has(rating) ? rating : 'unknown';
};

/** What a template should be: the name of the settings, in the account's language. */
export type WantedTemplate = { name: string; language: string };

/** A template out of a row of it. */
export const templateOf = ({ name, language, status }: Record<string, unknown>): Template => ({
  ...{ name: String(name), language: String(language), status: String(status) },
});

/** The wanted template as the owner sees it, whether or not it exists. */
export const shownTemplate = (
  connection: Pick<Connection, 'templates' | 'wabaId'>,
  wanted: WantedTemplate,
): Template =>
  connection.templates.find(
    ({ name, language }) => name === wanted.name && language === wanted.language,
  ) ?? { ...wanted, status: connection.wabaId === null ? 'unknown' : 'not_created' };

/**
 * The template to send with: the wanted one, unless it is known not to be ready while one in another language is.
 * Otherwise a change of language would stop all sends until the new template is approved.
 */
export const chooseTemplate = (
  connection: Pick<Connection, 'templates' | 'wabaId'>,
  wanted: WantedTemplate,
): WantedTemplate => {
  const shown = shownTemplate(connection, wanted);
  if (shown.status === 'approved') return shown;
  const ready = connection.templates
    .filter(({ name, status }) => name === wanted.name && status === 'approved')
    .toSorted((one, other) => one.language.localeCompare(other.language));
  return ready[0] ?? shown;
};

/** How far the provider's clock may be behind ours, when its news is compared with what it told us when asked. */
const clockToleranceMs = 60_000;

/** What is stored of a template (ms): when the provider was last asked, and its last news. */
export type KnownTemplate = {
  status: TemplateStatus;
  checkedAt: number;
  newsAt: number;
};

/**
 * What news of a template means: it changes the state, it confirms it, or it is too old to mean anything. The provider promises no order, and repeats what it is not sure to have told.
 */
export const judgeNews = (
  known: KnownTemplate | undefined,
  news: { status: TemplateStatus; at: number },
): 'change' | 'confirm' | 'old' => {
  if (known === undefined) return 'change';
  if (news.at < known.newsAt || news.at < known.checkedAt - clockToleranceMs) return 'old';
  return known.status === news.status ? 'confirm' : 'change';
};

const objectGone = 33;

/**
 * Why a refused send means that the connection cannot send any more; undefined for troubles that pass or that
 * concern the message alone. `code` is that of a refusal of class broken (reference 02 section 3).
 */
export const brokenReasonOf = (code: number): BrokenReason | undefined => {
  if (code === 0 || code === 190) return 'token_invalid';
  if (code === 10 || (code >= 200 && code <= 299)) return 'permission_missing';
  // Of class broken, 100 comes with the subcode of an object that is gone.
  return code === objectGone || code === 100 || code === 803 ? 'number_not_accessible' : undefined;
};

const exchangeIssues: Record<number, string> = {
  36007: 'has expired: a code lives 30 seconds',
  36009: 'was used already: a code is good for one call',
};

const registerIssues: Record<number, string> = {
  131031: 'is locked by WhatsApp',
  133005:
    'has a two-step verification PIN of its own: turn it off in WhatsApp Manager, then repeat',
  133006: 'must be verified in WhatsApp Manager first',
  133008: 'had too many wrong PINs: WhatsApp asks to wait before it is registered',
  133009: 'had too many wrong PINs: WhatsApp asks to wait before it is registered',
  133015: 'was deleted lately: repeat in five minutes',
  133016: 'was registered too often: WhatsApp asks to wait up to 72 hours',
};

const templateIssues: Record<number, string> = {
  2388019: 'cannot be created: the WhatsApp Business account has as many templates as it may have',
};

const fieldOf: Record<GraphStep, string> = {
  exchange_code: 'code',
  read_number: 'phone_number_id',
  register: 'phone_number_id',
  read_account: 'waba_id',
  list_numbers: 'waba_id',
  subscribe: 'waba_id',
  unsubscribe: 'waba_id',
  list_templates: 'waba_id',
  create_template: 'template',
};

const exchangeIssue = ({ code, subcode = 0 }: GraphRefusal): FieldIssue | undefined => {
  // Anything but a wrong code is about our own app.
  if (code !== 100) return undefined;
  return { field: 'code', issue: exchangeIssues[subcode] ?? 'is not a code of this signup' };
};

const isGone = ({ code, subcode }: GraphRefusal): boolean =>
  code === objectGone || code === 803 || (code === 100 && subcode === objectGone);

const ownIssue = ({ step, code, subcode = 0 }: GraphRefusal): string | undefined => {
  if (step === 'register') return registerIssues[code ?? -1];
  return step === 'create_template'
    ? (templateIssues[subcode] ?? templateIssues[code ?? -1])
    : undefined;
};

const passing = new Set(['retry', 'throttle', 'pair']);

/** Trouble of the provider, or of an earlier deregistration that is not through yet: nothing in the request is wrong. */
const isPassing = ({ code, subcode, transient }: GraphRefusal): boolean =>
  code === null ||
  code === 133000 ||
  passing.has(classifyWhatsappError({ code, subcode, transient }));

const permissions =
  'lacks a permission: whatsapp_business_messaging and whatsapp_business_management are needed';

const generalIssue = (code: number): string =>
  code === 368
    ? 'is restricted by WhatsApp for a policy violation'
    : `was refused by WhatsApp with code ${code}`;

/**
 * What is wrong with which field when the provider refused; undefined when it is the provider's or our own trouble
 * and nothing in the request would change it. `tokenField` is where the token came from.
 */
export const issueOf = (refusal: GraphRefusal, tokenField: string): FieldIssue | undefined => {
  const { step } = refusal;
  const code = refusal.code ?? -1;
  if (step === 'exchange_code') return exchangeIssue(refusal);
  const field = fieldOf[step];
  const own = ownIssue(refusal);
  if (own !== undefined) return { field, issue: own };
  if (isPassing(refusal)) return undefined;
  if (isGone(refusal)) {
    return { field, issue: 'is not known to WhatsApp, or the token does not reach it' };
  }
  const reason = code === 3 ? 'permission_missing' : brokenReasonOf(code);
  if (reason === 'token_invalid') {
    return { field: tokenField, issue: 'is not accepted by WhatsApp: invalid, expired or revoked' };
  }
  if (reason === 'permission_missing') return { field: tokenField, issue: permissions };
  return { field, issue: generalIssue(code) };
};

/** A token goes into a header: anything but visible ASCII of a sensible length cannot be one. */
export const isTokenText = (token: string): boolean => /^[\x21-\x7e]{1,4096}$/.test(token);

const unregistered = new Set(['PENDING', 'OFFLINE', 'DISCONNECTED', 'UNVERIFIED']);
const lost = new Set(['BANNED', 'DELETED']);

/** Whether a number of this state (reference 02 section 6) must be registered before it can send. */
export const needsRegistration = (status: string): boolean => unregistered.has(status);

/** Whether a number of this state will never send again. */
export const isLost = (status: string): boolean => lost.has(status);

/** Meta takes 30 to 900 seconds as the lifetime of a template. */
export const templateTtlSeconds = (seconds: number): number => Math.min(Math.max(seconds, 30), 900);

/** What an account_update says about the connections of a business account. */
export type AccountEffect = { broken: BrokenReason } | { healed: BrokenReason };

/** They broke, work again, or neither. */
export const accountEffect = (
  event: string,
  banState: string | null,
): AccountEffect | undefined => {
  if (event === 'DISABLED_UPDATE') {
    if (banState === 'DISABLE') return { broken: 'account_disabled' };
    return banState === 'REINSTATE' ? { healed: 'account_disabled' } : undefined;
  }
  if (event === 'ACCOUNT_DELETED') return { broken: 'account_disabled' };
  return event === 'PARTNER_REMOVED' || event === 'PARTNER_APP_UNINSTALLED'
    ? { broken: 'app_removed' }
    : undefined;
};
