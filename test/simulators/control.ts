// The control API: what is on a phone, how it behaves, what the providers saw.
import {
  type Behaviour,
  telegramBehaviours,
  whatsappBehaviours,
  whatsappPlan,
} from './behaviours.ts';
import type { Phones } from './phones.ts';
import type { Answer } from './server.ts';
import type { Stats } from './stats.ts';
import type { TelegramSim } from './telegram.ts';
import type { WhatsappSim } from './whatsapp.ts';

type Json = Record<string, unknown>;

const bad = (error: string): Answer => ({ status: 400, json: { error } });
const phonePattern = /^\+[1-9]\d{6,14}$/;
const maxDelayMs = 600_000;

/** Reads {whatsapp?, telegram?, delay_ms?}; a text says what is wrong. */
const readBehaviour = (body: Json): Partial<Behaviour> | string => {
  const unknown = Object.keys(body).find(
    (key) => !['whatsapp', 'telegram', 'delay_ms'].includes(key),
  );
  if (unknown) return `${unknown} is not known: whatsapp, telegram, delay_ms`;
  const { whatsapp, telegram, delay_ms: delayMs } = body;
  if (whatsapp !== undefined && !whatsappPlan(String(whatsapp))) {
    const names = Object.keys(whatsappBehaviours).join(', ');
    return `whatsapp is one of ${names}, error:<code>, failed:<code>`;
  }
  const telegramName = telegramBehaviours.find((name) => name === telegram);
  if (telegram !== undefined && !telegramName)
    return `telegram is one of ${telegramBehaviours.join(', ')}`;
  if (delayMs !== undefined && !(Number(delayMs) >= 0 && Number(delayMs) <= maxDelayMs)) {
    return `delay_ms is 0 to ${maxDelayMs}`;
  }
  return {
    ...(whatsapp === undefined ? {} : { whatsapp: String(whatsapp) }),
    ...(telegramName === undefined ? {} : { telegram: telegramName }),
    ...(delayMs === undefined ? {} : { delayMs: Number(delayMs) }),
  };
};

const behaviourAnswer = ({ whatsapp, telegram, delayMs }: Behaviour): Answer => ({
  status: 200,
  json: { whatsapp, telegram, delay_ms: delayMs },
});

export type Control = {
  serve(method: string, path: string[], body: Json): Promise<Answer | undefined>;
};

export const createControl = (deps: {
  phones: Phones;
  stats: Stats;
  telegram: TelegramSim;
  whatsapp: WhatsappSim;
}): Control => {
  const { phones, stats, telegram, whatsapp } = deps;

  const tap = async (phone: string, body: Json): Promise<Answer> => {
    const { url, contact = phone } = body;
    if (typeof url !== 'string' || !URL.canParse(url)) return bad('url is the link to tap');
    if (contact !== null && !phonePattern.test(String(contact))) {
      return bad('contact is a phone number in E.164, or null');
    }
    const result = await telegram.start(phone, url, contact === null ? null : String(contact));
    return { status: 200, json: result };
  };

  const ofPhone = async (
    method: string,
    path: string[],
    body: Json,
  ): Promise<Answer | undefined> => {
    const [, phone = '', what, detail] = path;
    if (!phonePattern.test(phone))
      return bad('a phone is written as E.164, with %2B or + in front');
    if (method === 'GET' && what === 'messages') {
      return { status: 200, json: { messages: phones.get(phone).messages } };
    }
    if (method === 'PUT' && what === 'behaviour') {
      const behaviour = readBehaviour(body);
      if (typeof behaviour === 'string') return bad(behaviour);
      return behaviourAnswer(phones.setBehaviour(phone, behaviour));
    }
    if (method === 'GET' && what === 'behaviour') return behaviourAnswer(phones.behaviourOf(phone));
    if (method !== 'POST' || what !== 'telegram') return undefined;
    if (detail === 'start') return tap(phone, body);
    if (detail === 'block' || detail === 'unblock') {
      await telegram.membership(phone, detail === 'block' ? 'kicked' : 'member');
      return { status: 200, json: {} };
    }
    return undefined;
  };

  const everything = (method: string, path: string[], body: Json): Answer | undefined => {
    const call = `${method} ${path.join('/')}`;
    if (call === 'GET stats') return { status: 200, json: stats.calls() };
    if (call === 'GET stats/messages') {
      return { status: 200, json: { messages: Object.fromEntries(stats.messages()) } };
    }
    if (call === 'PUT behaviour') {
      const behaviour = readBehaviour(body);
      return typeof behaviour === 'string'
        ? bad(behaviour)
        : behaviourAnswer(phones.setDefault(behaviour));
    }
    if (call === 'DELETE state') {
      phones.reset();
      stats.reset();
      telegram.reset();
      return { status: 200, json: {} };
    }
    return undefined;
  };

  const template = (path: string[], body: Json): Answer => {
    const { event, language, reason } = body;
    if (typeof event !== 'string')
      return bad('event is a template status, such as APPROVED or PAUSED');
    const found = whatsapp.templates.setStatus(path[1] ?? '', {
      event,
      ...(typeof language === 'string' ? { language } : {}),
      ...(typeof reason === 'string' ? { reason } : {}),
    });
    return found ? { status: 200, json: {} } : { status: 404, json: { error: 'no such template' } };
  };

  return {
    serve: async (method, path, body) => {
      if (path[0] === 'phones' && path.length > 1) return ofPhone(method, path, body);
      if (method === 'POST' && path[0] === 'templates' && path[2] === 'status') {
        return template(path, body);
      }
      return everything(method, path, body);
    },
  };
};
