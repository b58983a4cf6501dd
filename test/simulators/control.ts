// The control API of the simulators: phones, behaviours and counters (design section 5, and what the tests need beyond it).
import type { ServerResponse } from 'node:http';
import {
  aboutBehaviours,
  allowedBehaviours,
  type Behaviour,
  parseBehaviour,
} from './behaviours.ts';
import { answered, Refusal, type Route, type RouteCall } from './http.ts';
import { type Bubble, type Phones, parsePhone } from './phones.ts';
import type { Stats } from './stats.ts';
import { readContact, type TelegramOwner } from './telegram-owner.ts';

/** A behaviour as the wire shows it. */
export const behaviourBody = ({ whatsapp, telegram, delayMs }: Behaviour) => ({
  whatsapp,
  telegram,
  delay_ms: delayMs,
});

/** A bubble as GET messages shows it. */
export const messageBody = ({ channel, code, text, atMs, phoneNumberId }: Bubble) => ({
  channel,
  code,
  text,
  at: new Date(atMs).toISOString(),
  ...(phoneNumberId === undefined ? {} : { phone_number_id: phoneNumberId }),
});

/** Messages of a phone, newest first: those with a code, or with `all` everything the service wrote. */
export const messagesOf = (phones: Phones, e164: string, all = false) =>
  phones
    .bubbles(e164)
    .filter(({ by, code }) => by === 'service' && (all || code !== null))
    .reverse()
    .map(messageBody);

const entriesPerWrite = 2000;

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });

const writeCounts = async (
  response: ServerResponse,
  name: string,
  counts: Iterable<[string, { accepted: number; delivered: number }]>,
) => {
  const write = async (text: string) => {
    if (!response.write(text) && !response.destroyed) await drained(response);
  };
  let part: string[] = [];
  let separator = '';
  await write(`"${name}":{`);
  for (const [id, { accepted, delivered }] of counts) {
    part.push(`${JSON.stringify(id)}:[${accepted},${delivered}]`);
    if (part.length < entriesPerWrite) continue;
    await write(separator + part.join(','));
    separator = ',';
    part = [];
  }
  await write(`${part.length > 0 ? separator : ''}${part.join(',')}}`);
};

const streamMessages = async (stats: Stats, { response, query }: RouteCall) => {
  const over = Number(query.get('over') ?? -1);
  if (!Number.isInteger(over)) throw new Refusal(400, 'over must be a whole number.');
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  response.write('{');
  await writeCounts(response, 'messages', stats.messages('whatsapp', over));
  response.write(',');
  await writeCounts(response, 'telegram', stats.messages('telegram', over));
  response.end('}\n');
  return answered;
};

const phoneOf = ({ params }: RouteCall): string => parsePhone(params.phone ?? '');

const optionalMs = (value: unknown, name: string): number | undefined => {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= 0 && value <= 60_000) return value;
  throw new Refusal(400, `${name} must be a number from 0 to 60000.`);
};

const startTelegram = (owner: TelegramOwner, call: RouteCall) => {
  const { url, contact, wait_ms: wait, quiet_ms: quiet } = call.body;
  const boundMs = optionalMs(wait, 'wait_ms');
  const quietMs = optionalMs(quiet, 'quiet_ms');
  const given = { url, contact: readContact(contact) };
  return owner.start(phoneOf(call), given, {
    ...(boundMs === undefined ? {} : { boundMs }),
    ...(quietMs === undefined ? {} : { quietMs }),
  });
};

const telegramRoutes = (owner: TelegramOwner): Route[] => {
  const base = '/phones/:phone/telegram';
  const post = (path: string, handle: (call: RouteCall) => unknown): Route => ({
    method: 'POST',
    path: `${base}/${path}`,
    handle,
  });
  return [
    post('start', (call) => startTelegram(owner, call)),
    post('text', async (call) => {
      const { text } = call.body;
      if (typeof text !== 'string' || text === '') throw new Refusal(400, 'text is required.');
      return { taken: await owner.say(phoneOf(call), text) };
    }),
    post('contact', async (call) => {
      const contact = readContact(call.body.contact);
      if (contact === null) throw new Refusal(400, 'contact cannot be null here.');
      return { taken: await owner.shareContact(phoneOf(call), contact) };
    }),
    post('block', async (call) => ({ taken: await owner.block(phoneOf(call)) })),
    post('unblock', async (call) => {
      await owner.unblock(phoneOf(call));
      return {};
    }),
    post('repeat', async (call) => ({ taken: await owner.repeat(phoneOf(call)) })),
  ];
};

/** The routes of phones, behaviours and counters. */
export const controlRoutes = (deps: {
  phones: Phones;
  stats: Stats;
  owner: TelegramOwner;
  webhooks(): Record<string, unknown>;
  reset(): void;
}): Route[] => {
  const { phones, stats, owner } = deps;
  return [
    {
      method: 'GET',
      path: '/phones/:phone/messages',
      handle: (call) => ({
        messages: messagesOf(phones, phoneOf(call), call.query.get('all') === '1'),
      }),
    },
    {
      method: 'GET',
      path: '/phones/:phone/behaviour',
      handle: (call) => behaviourBody(phones.behaviour(phoneOf(call))),
    },
    {
      method: 'PUT',
      path: '/phones/:phone/behaviour',
      handle: (call) => {
        phones.behave(phoneOf(call), parseBehaviour(call.body));
        return behaviourBody(phones.behaviour(phoneOf(call)));
      },
    },
    {
      method: 'GET',
      path: '/behaviour',
      handle: () => ({
        allowed: allowedBehaviours,
        about: aboutBehaviours,
        all: behaviourBody(phones.behaveAll({})),
      }),
    },
    {
      method: 'PUT',
      path: '/behaviour',
      handle: ({ body }) => behaviourBody(phones.behaveAll(parseBehaviour(body))),
    },
    ...telegramRoutes(owner),
    {
      method: 'GET',
      path: '/stats',
      handle: () => ({ ...stats.summary(), webhooks: deps.webhooks() }),
    },
    { method: 'GET', path: '/stats/messages', handle: (call) => streamMessages(stats, call) },
    {
      method: 'DELETE',
      path: '/state',
      handle: () => {
        deps.reset();
        return { reset: true };
      },
    },
  ];
};
