// Live messages that nobody pays for: by fresh accounts with nothing verified, and by a funded one that never verifies.
import { randomInt, randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack, Figure, RunningStack } from './attack.ts';

type Answer = { status: number; data: Record<string, unknown>; code: string };

const patienceMs = 20_000;

type Call = {
  method?: string;
  url: string;
  token?: string | undefined;
  body?: unknown;
  /** The address of this machine that the call comes from. */
  from?: string;
};

const textOf = async (response: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

const answerOf = (status: number, text: string): Answer => {
  const read = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {};
  const error = (read.error ?? {}) as { code?: string };
  return {
    status,
    data: (read.data ?? read) as Record<string, unknown>,
    code: error.code ?? String(status),
  };
};

const call = ({ method = 'POST', url, token, body, from }: Call): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (text !== undefined) headers['Content-Length'] = String(Buffer.byteLength(text));
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    const options = { method, headers, localAddress: from, timeout: patienceMs, agent: false };
    const sent = request(url, options, (response) => {
      textOf(response).then((read) => resolve(answerOf(response.statusCode ?? 0, read)), reject);
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.on('error', reject);
    sent.end(text);
  });

/** A mobile number abroad that nobody else has been sent to, each in another block. */
const foreignMobile = (): string =>
  randomInt(2) === 0
    ? `+2010${randomInt(10_000_000, 99_999_999)}`
    : `+62812${randomInt(10_000_000, 99_999_999)}`;

type Account = { id: string; key: string };

/** Signs up as a stranger does, and takes the first live key. */
const signUp = async ({ api }: RunningStack, from: string): Promise<Account> => {
  const email = `${randomUUID()}@attacks.example`;
  const password = `a password ${randomUUID()}`;
  const registered = await call({
    url: `${api}/v1/clients/register`,
    from,
    body: { email, password, name: 'Attack', phone: '+14155550199' },
  });
  const login = await call({ url: `${api}/v1/clients/login`, from, body: { email, password } });
  const token = String(login.data.session_token ?? '');
  const revealed = await call({ url: `${api}/v1/clients/signup-secret`, from, token });
  const keys = revealed.data.keys as { live?: string } | undefined;
  const account = registered.data.account as { id?: string } | undefined;
  if (keys?.live === undefined || account?.id === undefined) {
    const codes = [registered.code, login.code, revealed.code].join(', ');
    throw new Error(`no account: register, login and signup-secret answered ${codes}`);
  }
  return { id: account.id, key: keys.live };
};

type Tally = { taken: number; refused: Map<string, number> };

const parallel = 8;
/** Below the burst limit of an account: what refuses is another rule. */
const perBatch = 96;
const batchMs = 10_500;

/** Sends to a fresh number each time, verifying nothing, until `most` were asked for. */
const sendMany = async (
  { api }: RunningStack,
  key: string,
  { path, most, from }: { path: 'send' | 'deliver'; most: number; from: string },
): Promise<Tally> => {
  const tally: Tally = { taken: 0, refused: new Map() };
  const one = async (): Promise<void> => {
    const code = path === 'deliver' ? { code: String(randomInt(100_000, 999_999)) } : {};
    const body = { phone: foreignMobile(), ...code };
    const answer = await call({ url: `${api}/v1/otp/${path}`, token: key, from, body });
    if (answer.status === 200) tally.taken += 1;
    else tally.refused.set(answer.code, (tally.refused.get(answer.code) ?? 0) + 1);
  };
  for (let asked = 0; asked < most; asked += perBatch) {
    const began = Date.now();
    let left = Math.min(perBatch, most - asked);
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await one();
      }
    };
    await Promise.all(Array.from({ length: parallel }, work));
    const wait = batchMs - (Date.now() - began);
    if (asked + perBatch < most && wait > 0) await sleep(wait);
  }
  return tally;
};

const refusals = ({ refused }: Tally): string =>
  [...refused].map(([code, count]) => `${count} × ${code}`).join(', ') || 'none refused';

/** How many messages the simulated WhatsApp took so far. */
const seenBy = async ({ sim }: RunningStack): Promise<number> => {
  const { data } = await call({ method: 'GET', url: `${sim}/stats` });
  return Number((data.messages as { whatsapp?: number } | undefined)?.whatsapp ?? 0);
};

const priceOf = async ({ api }: RunningStack, key: string): Promise<number> => {
  const { data } = await call({ method: 'GET', url: `${api}/v1/clients/pricing`, token: key });
  return Number(data.default_price ?? 0);
};

const freshAccounts = 3;
const perFresh = 60;
const mostFresh = 10;
const deposit = 50;
const delivers = 260;
const mostExposedUsd = 10;

const usd = (amount: number): string => `${amount.toFixed(2)} USD`;

const fresh = async (stack: RunningStack, from: string): Promise<Figure[]> => {
  const before = await seenBy(stack);
  const accounts: Account[] = [];
  for (let n = 0; n < freshAccounts; n += 1) accounts.push(await signUp(stack, from));
  const order = { path: 'send', most: perFresh, from } as const;
  const tallies = await Promise.all(accounts.map(({ key }) => sendMany(stack, key, order)));
  const seen = (await seenBy(stack)) - before;
  const most = Math.max(...tallies.map(({ taken }) => taken));
  const price = await priceOf(stack, accounts[0]?.key ?? '');
  const [first] = tallies;
  return [
    {
      what: `live messages of a fresh account, nothing verified (${perFresh} tried; ${first ? refusals(first) : ''})`,
      value: `${most}`,
      bound: `≤ ${mostFresh}`,
      holds: most > 0 && most <= mostFresh,
    },
    {
      what: `messages that WhatsApp saw of ${freshAccounts} sign-ups of one source, at ${usd(seen * price)}`,
      value: `${seen}`,
      bound: `≤ ${freshAccounts * mostFresh}`,
      holds: seen > 0 && seen <= freshAccounts * mostFresh,
    },
  ];
};

const funded = async (stack: RunningStack, from: string): Promise<Figure[]> => {
  const account = await signUp(stack, from);
  const { id, key } = account;
  const credited = await call({
    url: `${stack.ops}/ops/api/accounts/${id}/credit`,
    token: stack.ops_token,
    body: { amount: deposit, note: 'Attack' },
  });
  if (credited.status !== 200) throw new Error(`no credit: ${credited.code}`);
  const before = await seenBy(stack);
  const tally = await sendMany(stack, key, { path: 'deliver', most: delivers, from });
  const seen = (await seenBy(stack)) - before;
  const cost = seen * (await priceOf(stack, key));
  return [
    {
      what: `cost of delivers that nobody verifies, ${usd(deposit)} deposited (${seen} of ${delivers} seen by WhatsApp; ${refusals(tally)})`,
      value: usd(cost),
      bound: `≤ ${usd(mostExposedUsd)}`,
      holds: seen > 0 && cost <= mostExposedUsd,
    },
  ];
};

/** Each run signs up from addresses of its own, so that it can be repeated within the hour. */
const addressOf = (): string => `127.0.${randomInt(1, 250)}.${randomInt(1, 250)}`;

export const freeSends: Attack = {
  name: 'free-sends',
  about: 'Sends live messages abroad that nobody verifies and nobody pays for.',
  run: async (stack) => [
    ...(await fresh(stack, addressOf())),
    ...(await funded(stack, addressOf())),
  ],
};
