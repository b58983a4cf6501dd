// POST messages of the WhatsApp simulator: what Meta checks, then what the phone's behaviour says (reference 02 sections 2 and 3).
import { isObject, type JsonObject } from './http.ts';
import type { Accounts, Business, WhatsAppNumber } from './whatsapp-accounts.ts';
import { GraphFailure, unknownObject } from './whatsapp-errors.ts';
import type { Template, Templates } from './whatsapp-templates.ts';

/** A message Meta would take. `windowClosed`: free text outside the 24-hour window, which fails by webhook. */
export type ValidMessage = {
  phone: string;
  code: string;
  text: string;
  echo: string | undefined;
  windowClosed: boolean;
};

const topLevel = new Set([
  ...['messaging_product', 'recipient_type', 'to', 'type', 'template', 'text'],
  ...['biz_opaque_callback_data', 'context'],
]);
const maxCodeLength = 15;

const fail = (code: number, details: string): GraphFailure => new GraphFailure(code, { details });

const textParameter = (component: JsonObject | undefined): string => {
  const parameters = component?.parameters;
  const [only] = Array.isArray(parameters) ? (parameters as unknown[]) : [];
  const sound = isObject(only) && only.type === 'text' && typeof only.text === 'string';
  if (!sound) throw fail(132012, 'A text parameter was expected.');
  return only.text as string;
};

const countParameters = (component: JsonObject | undefined): number =>
  Array.isArray(component?.parameters) ? component.parameters.length : 0;

const componentOf = (components: JsonObject[], type: string): JsonObject | undefined =>
  components.find((component) => String(component.type).toLowerCase() === type);

/** The code of an authentication message: one body parameter, and the same in its URL button. */
const readCode = (template: JsonObject): string => {
  const given: unknown[] = Array.isArray(template.components) ? template.components : [];
  const components = given.filter(isObject);
  const body = componentOf(components, 'body');
  const button = componentOf(components, 'button');
  if (countParameters(body) !== 1) {
    const details = `body: number of localizable_params (${countParameters(body)}) does not match the expected number of params (1)`;
    throw fail(132000, details);
  }
  if (button?.sub_type !== 'url' || String(button.index) !== '0') {
    throw fail(132012, 'buttons: Button at index 0 of type Url requires a parameter');
  }
  if (countParameters(button) !== 1) throw fail(132012, 'buttons: one parameter is required');
  const code = textParameter(body);
  if (code.length > maxCodeLength || textParameter(button).length > maxCodeLength) {
    throw fail(132005, `The code is longer than ${maxCodeLength} characters.`);
  }
  if (code.length === 0) throw fail(131008, 'The code is empty.');
  return code;
};

const usable = (template: Template | undefined, name: string, language: string): Template => {
  if (template?.status === 'APPROVED') return template;
  if (template?.status === 'PAUSED') throw fail(132015, `Template ${name} is paused.`);
  if (template?.status === 'DISABLED') throw fail(132016, `Template ${name} is disabled.`);
  throw fail(132001, `template name (${name}) does not exist in ${language}`);
};

const messageText = (code: string, { components }: Template): string =>
  components
    .map(({ text }) => text)
    .filter((text) => typeof text === 'string')
    .join('\n')
    .replace('*{{1}}*', code);

const checkEnvelope = (body: JsonObject): void => {
  const unknown = Object.keys(body).find((name) => !topLevel.has(name));
  if (unknown) throw new GraphFailure(100, { details: `Unexpected key "${unknown}".` });
  if (body.messaging_product !== 'whatsapp') {
    throw new GraphFailure(100, { details: 'messaging_product must be whatsapp.' });
  }
  const { recipient_type: recipient, biz_opaque_callback_data: echo } = body;
  if (recipient !== undefined && recipient !== 'individual') {
    throw fail(131009, 'recipient_type must be individual.');
  }
  if (echo !== undefined && (typeof echo !== 'string' || echo.length > 512)) {
    throw fail(131009, 'biz_opaque_callback_data must be text of at most 512 characters.');
  }
};

const readRecipient = (body: JsonObject, number: WhatsAppNumber): string => {
  if (body.to === undefined) throw fail(131008, "The parameter 'to' is required.");
  const match = typeof body.to === 'string' ? /^\+?([1-9]\d{6,14})$/.exec(body.to) : null;
  const digits = match?.[1];
  if (!digits) throw fail(131009, "The parameter 'to' is not a valid phone number.");
  if (digits === number.digits) throw fail(131021, 'Recipient phone number is the sender.');
  return `+${digits}`;
};

export type MessageReader = (number: WhatsAppNumber, body: JsonObject) => ValidMessage;

/** Creates the check of a message. The returned function throws GraphFailure for what Meta would refuse. */
export const createMessageReader = (templates: Templates): MessageReader => {
  const readTemplate = (number: WhatsAppNumber, template: unknown) => {
    if (!isObject(template)) throw fail(131008, "The parameter 'template' is required.");
    const language = isObject(template.language) ? template.language.code : undefined;
    const { name } = template;
    if (typeof name !== 'string') throw fail(131008, 'template.name is required.');
    if (typeof language !== 'string') throw fail(131008, 'template.language.code is required.');
    const found = usable(templates.find(number.wabaId, name, language), name, language);
    const code = readCode(template);
    return { code, text: messageText(code, found), windowClosed: false };
  };

  return (number, body) => {
    checkEnvelope(body);
    const phone = readRecipient(body, number);
    const echo = body.biz_opaque_callback_data as string | undefined;
    if (body.type === 'template') return { phone, echo, ...readTemplate(number, body.template) };
    if (body.type !== undefined && body.type !== 'text') {
      throw fail(131051, `Message type ${String(body.type)} is not simulated.`);
    }
    const text = isObject(body.text) ? body.text.body : undefined;
    if (typeof text !== 'string' || text === '') throw fail(131008, 'text.body is required.');
    return { phone, echo, code: '', text, windowClosed: true };
  };
};

/** Whether the sender may send at all. @throws GraphFailure */
export const checkSender = (
  accounts: Accounts,
  business: Business,
  phoneNumberId: string,
): WhatsAppNumber => {
  const number = accounts.number(phoneNumberId);
  if (!number || number.wabaId !== business.wabaId) {
    throw unknownObject(phoneNumberId, 'post');
  }
  if (business.fault !== null) throw new GraphFailure(business.fault);
  if (!number.registered) throw fail(133010, 'The number is not registered.');
  return number;
};
