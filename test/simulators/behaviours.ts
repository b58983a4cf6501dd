// What a simulated phone is told to do: finding a behaviour by its name, and reading it from a request.
import { Refusal } from './http.ts';
import {
  accepts,
  failed,
  refuses,
  type TelegramPlan,
  telegramError,
  telegramPlans,
  type WhatsAppPlan,
  whatsappPlans,
} from './plans.ts';
import { isKnownError, knownErrorCodes } from './whatsapp-errors.ts';

/** What a phone does: names of the tables above, and a delay in ms (null: the behaviour's own). */
export type Behaviour = { whatsapp: string; telegram: string; delayMs: number | null };

export const standardBehaviour: Behaviour = { whatsapp: 'ok', telegram: 'ok', delayMs: null };

const codeOf = (name: string, prefix: string): number | undefined => {
  const match = name.startsWith(prefix) ? /^\d{1,9}$/.exec(name.slice(prefix.length)) : null;
  return match ? Number(match[0]) : undefined;
};

/** The plan of a WhatsApp behaviour; undefined when there is none of that name. */
export const findWhatsAppPlan = (name: string): WhatsAppPlan | undefined => {
  const plan = Object.hasOwn(whatsappPlans, name) ? whatsappPlans[name] : undefined;
  if (plan) return plan;
  const error = codeOf(name, 'error:');
  if (error !== undefined && isKnownError(error)) return refuses(`Error ${error}.`, error);
  const code = codeOf(name, 'failed:');
  return code !== undefined && isKnownError(code)
    ? accepts(`200, then failed ${code}.`, [failed(code)])
    : undefined;
};

/** The plan of a Telegram behaviour; undefined when there is none of that name. */
export const findTelegramPlan = (name: string): TelegramPlan | undefined => {
  const plan = Object.hasOwn(telegramPlans, name) ? telegramPlans[name] : undefined;
  if (plan) return plan;
  const seconds = codeOf(name, 'retry_after:');
  return seconds === undefined
    ? undefined
    : {
        about: `429 with retry_after ${seconds}.`,
        ...telegramError(429, `Too Many Requests: retry after ${seconds}`, seconds),
      };
};

/** Names the control API allows, per channel. */
export const allowedBehaviours = {
  whatsapp: [...Object.keys(whatsappPlans), 'error:<code>', 'failed:<code>'],
  telegram: [...Object.keys(telegramPlans), 'retry_after:<seconds>'],
};

const aboutOf = (plans: Record<string, { about: string }>) =>
  Object.fromEntries(Object.entries(plans).map(([name, { about }]) => [name, about]));

/** What each named behaviour does, in words. */
export const aboutBehaviours = {
  whatsapp: aboutOf(whatsappPlans),
  telegram: aboutOf(telegramPlans),
};

const maxDelayMs = 600_000;

const parseDelay = (value: unknown): number | null => {
  if (value === null) return null;
  if (typeof value === 'number' && value >= 0 && value <= maxDelayMs) return value;
  throw new Refusal(400, `delay_ms must be null or a number from 0 to ${maxDelayMs}.`);
};

const parseName = (
  channel: 'whatsapp' | 'telegram',
  value: unknown,
  find: (name: string) => unknown,
): string => {
  if (typeof value === 'string' && find(value)) return value;
  const codes = channel === 'whatsapp' ? ` Codes: ${knownErrorCodes.join(', ')}.` : '';
  const names = allowedBehaviours[channel].join(', ');
  throw new Refusal(400, `${channel} must be one of ${names}.${codes}`);
};

/** Reads `{whatsapp?, telegram?, delay_ms?}`. @throws Refusal 400 with what is allowed */
export const parseBehaviour = (body: Record<string, unknown>): Partial<Behaviour> => {
  const known = ['whatsapp', 'telegram', 'delay_ms'];
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown) throw new Refusal(400, `${unknown} is not known; allowed: ${known.join(', ')}.`);
  const { whatsapp, telegram, delay_ms: delay } = body;
  return {
    ...(whatsapp === undefined
      ? {}
      : { whatsapp: parseName('whatsapp', whatsapp, findWhatsAppPlan) }),
    ...(telegram === undefined
      ? {}
      : { telegram: parseName('telegram', telegram, findTelegramPlan) }),
    ...(delay === undefined ? {} : { delayMs: parseDelay(delay) }),
  };
};
