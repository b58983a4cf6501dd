// Message templates of the WhatsApp simulator: authentication templates, their review and their state (reference 02 section 5).
import type { Clock, Timers } from './clock.ts';
import { isObject, type JsonObject } from './http.ts';
import type { Business } from './whatsapp-accounts.ts';
import { GraphFailure } from './whatsapp-errors.ts';
import type { WhatsAppWebhooks } from './whatsapp-webhooks.ts';

export type Template = {
  id: string;
  wabaId: string;
  name: string;
  language: string;
  category: string;
  status: string;
  rejectedReason: string;
  ttlSeconds: number;
  components: JsonObject[];
};

/** How new templates are reviewed: at once in the answer, shortly after by webhook, never, or refused. */
export type Review = 'instant' | 'auto' | 'manual' | 'reject';
export const reviews: readonly string[] = ['instant', 'auto', 'manual', 'reject'];

export const templateEvents = [
  ...['APPROVED', 'REJECTED', 'PENDING', 'PAUSED', 'DISABLED', 'FLAGGED', 'REINSTATED'],
  ...['IN_APPEAL', 'DELETED', 'PENDING_DELETION', 'LIMIT_EXCEEDED', 'LOCKED', 'ARCHIVED'],
  'UNARCHIVED',
];

// Events that are no state of their own: the template can be used (again).
const usableEvents = new Set(['FLAGGED', 'REINSTATED', 'UNARCHIVED']);
const reviewMs = 300;

const bodyText = '*{{1}}* is your verification code.';

const buttonOf = (text: unknown) => ({
  type: 'URL',
  text: typeof text === 'string' ? text : 'Copy code',
  url: 'https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}',
  example: ['https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp123456'],
});

// A template is created with an OTP button and read back with a URL button.
const storedComponent = (component: JsonObject): JsonObject => {
  const type = String(component.type).toUpperCase();
  if (type === 'BODY') {
    const advice = component.add_security_recommendation === true;
    const text = advice ? `${bodyText} For your security, do not share this code.` : bodyText;
    return {
      type,
      text,
      add_security_recommendation: advice,
      example: { body_text: [['123456']] },
    };
  }
  if (type === 'FOOTER') {
    const minutes = component.code_expiration_minutes;
    return {
      type,
      text: `This code expires in ${minutes} minutes.`,
      code_expiration_minutes: minutes,
    };
  }
  const [button] = Array.isArray(component.buttons) ? component.buttons : [];
  return { type, buttons: [buttonOf(isObject(button) ? button.text : undefined)] };
};

const invalid = (details: string, subcode?: number): GraphFailure =>
  new GraphFailure(100, { details, ...(subcode === undefined ? {} : { subcode }) });

const checkComponent = (component: unknown): JsonObject => {
  const type = isObject(component) ? String(component.type).toUpperCase() : '';
  if (!isObject(component) || !['BODY', 'FOOTER', 'BUTTONS'].includes(type)) {
    throw invalid('A component must be BODY, FOOTER or BUTTONS.', 2388073);
  }
  if (type === 'BODY' && component.text !== undefined) {
    throw invalid('The body of an authentication template is fixed text.', 2388073);
  }
  const minutes = Number(component.code_expiration_minutes);
  if (type === 'FOOTER' && !(Number.isInteger(minutes) && minutes >= 1 && minutes <= 90)) {
    throw invalid('code_expiration_minutes must be 1 to 90.', 2388047);
  }
  const buttons = Array.isArray(component.buttons) ? component.buttons : [];
  const [button] = buttons;
  const isCopy =
    isObject(button) &&
    String(button.type).toUpperCase() === 'OTP' &&
    String(button.otp_type).toUpperCase() === 'COPY_CODE';
  if (type === 'BUTTONS' && !(buttons.length === 1 && isCopy)) {
    throw invalid('Authentication templates have one OTP button of otp_type COPY_CODE.', 2388073);
  }
  return component;
};

const checkComponents = (value: unknown): JsonObject[] => {
  if (!Array.isArray(value)) throw invalid('components is missing.');
  const components = value.map(checkComponent);
  const types = components.map(({ type }) => String(type).toUpperCase());
  if (!types.includes('BODY') || !types.includes('BUTTONS')) {
    throw invalid('BODY and BUTTONS are required.', 2388073);
  }
  return components.map(storedComponent);
};

const checkTtl = (value: unknown): number => {
  if (value === undefined) return 600;
  const seconds = Number(value);
  const allowed = seconds === -1 || (Number.isInteger(seconds) && seconds >= 30 && seconds <= 900);
  if (!allowed) throw invalid('message_send_ttl_seconds must be 30 to 900, or -1.');
  return seconds;
};

const standardComponents = () =>
  [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 5 },
    { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }] },
  ].map(storedComponent);

const keyOf = (wabaId: string, name: string, language: string) => `${wabaId}/${name}/${language}`;

export type Templates = ReturnType<typeof createTemplates>;

/** Creates the templates; the standard one is approved from the start. */
export const createTemplates = (deps: {
  clock: Clock;
  timers: Timers;
  webhooks: WhatsAppWebhooks;
  business(wabaId: string): Business | undefined;
  standard: { wabaId: string; name: string; language: string };
}) => {
  const byKey = new Map<string, Template>();
  const byId = new Map<string, Template>();
  let review: Review = 'auto';
  let serial = 0;

  const keep = (template: Omit<Template, 'id' | 'rejectedReason'>): Template => {
    serial += 1;
    const id = String(594_425_000_000_000 + (deps.clock.now() % 1e9) * 1000 + serial);
    const kept = { ...template, id, rejectedReason: 'NONE' };
    byKey.set(keyOf(kept.wabaId, kept.name, kept.language), kept);
    byId.set(id, kept);
    return kept;
  };

  const flip = (template: Template, event: string, reason: string | null = null) => {
    template.status = usableEvents.has(event) ? 'APPROVED' : event;
    template.rejectedReason = event === 'REJECTED' ? (reason ?? 'INVALID_FORMAT') : 'NONE';
    const business = deps.business(template.wabaId);
    if (!business) return;
    deps.webhooks.field(business, 'message_template_status_update', {
      event,
      message_template_id: Number(template.id),
      message_template_name: template.name,
      // Meta's webhook writes a hyphen where its templates have an underscore.
      message_template_language: template.language.replace('_', '-'),
      message_template_category: template.category,
      reason: event === 'REJECTED' ? template.rejectedReason : reason,
      ...(event === 'PAUSED' ? { other_info: { title: 'FIRST_PAUSE', description: '' } } : {}),
      ...(event === 'DISABLED'
        ? { disable_info: { disable_date: Math.floor(deps.clock.now() / 1000) } }
        : {}),
    });
  };

  const submit = (template: Template) => {
    if (review === 'instant') template.status = 'APPROVED';
    if (review !== 'auto' && review !== 'reject') return;
    const event = review === 'auto' ? 'APPROVED' : 'REJECTED';
    deps.timers.after(reviewMs, () => {
      if (template.status === 'PENDING') flip(template, event);
    });
  };

  const reset = () => {
    byKey.clear();
    byId.clear();
    review = 'auto';
    const components = standardComponents();
    const fixed = { category: 'AUTHENTICATION', status: 'APPROVED', ttlSeconds: 300, components };
    keep({ ...deps.standard, ...fixed });
  };
  reset();

  return {
    reset,
    flip,
    find: (wabaId: string, name: string, language: string): Template | undefined =>
      byKey.get(keyOf(wabaId, name, language)),
    byId: (id: string): Template | undefined => byId.get(id),
    list: (wabaId?: string): Template[] =>
      [...byKey.values()].filter((template) => wabaId === undefined || template.wabaId === wabaId),
    setReview: (mode: Review): void => {
      review = mode;
    },
    /** Creates a template and hands it to review. @throws GraphFailure 100 */
    create: (wabaId: string, input: JsonObject): Template => {
      const { name, language, category } = input;
      if (typeof name !== 'string' || !/^[a-z0-9_]{1,512}$/.test(name)) throw invalid('name');
      if (typeof language !== 'string' || !/^[a-z]{2,3}(_[A-Z]{2})?$/.test(language)) {
        throw invalid('language');
      }
      if (String(category).toUpperCase() !== 'AUTHENTICATION') throw invalid('category');
      if (byKey.has(keyOf(wabaId, name, language))) throw invalid('It exists already.', 2388024);
      const components = checkComponents(input.components);
      const ttlSeconds = checkTtl(input.message_send_ttl_seconds);
      const fixed = { category: 'AUTHENTICATION', status: 'PENDING' };
      const template = keep({ wabaId, name, language, ...fixed, ttlSeconds, components });
      submit(template);
      return template;
    },
    /** Changes a template and hands it to review again. @throws GraphFailure 100 */
    edit: (template: Template, input: JsonObject): void => {
      if (input.components !== undefined) template.components = checkComponents(input.components);
      if (input.message_send_ttl_seconds !== undefined) {
        template.ttlSeconds = checkTtl(input.message_send_ttl_seconds);
      }
      template.status = 'PENDING';
      submit(template);
    },
    /** Deletes by name, or one language by id. @throws GraphFailure 100 when there is none */
    remove: (wabaId: string, name: string, id?: string): void => {
      const doomed = [...byKey.values()].filter(
        (one) => one.wabaId === wabaId && one.name === name && (id === undefined || one.id === id),
      );
      if (doomed.length === 0) throw invalid('No such template.', 2593002);
      for (const template of doomed) {
        byKey.delete(keyOf(wabaId, template.name, template.language));
        byId.delete(template.id);
      }
    },
  };
};
