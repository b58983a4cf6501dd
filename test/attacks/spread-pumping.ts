// Pumping one block of 10,000 numbers from four accounts at once, beside an account whose codes there are entered.
import { randomBytes, randomInt } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack, Figure, RunningStack } from './attack.ts';

type Answer = { status: number; data: Record<string, unknown>; error: Record<string, unknown> };
type Call = { method: string; url: string; token?: string; body?: object; from?: string };

const callMs = 30_000;

/** One call, from an address of this machine. */
const call = ({ method, url, token, body, from }: Call): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers: Record<string, string> = { 'content-length': String(Buffer.byteLength(text)) };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const options = { method, headers, timeout: callMs, localAddress: from };
    const asked = request(url, options, (response) => {
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        answer += part;
      });
      response.on('end', () => {
        const status = response.statusCode ?? 0;
        try {
          const parsed = JSON.parse(answer) as Partial<Answer> & Record<string, unknown>;
          // The simulators answer without an envelope.
          resolve({ status, data: parsed.data ?? parsed, error: parsed.error ?? {} });
        } catch {
          resolve({ status, data: {}, error: {} });
        }
      });
    });
    asked.on('timeout', () => asked.destroy(new Error(`${method} ${url} took too long`)));
    asked.on('error', reject);
    asked.end(text);
  });

const need = (answer: Answer, what: string): Answer => {
  if (answer.status >= 300) {
    throw new Error(`${what}: ${answer.status} ${JSON.stringify(answer.error)}`);
  }
  return answer;
};

type Sender = { name: string; key: string };

const approveTries = 40;

/** As soon as the simulator has the template of a number, it is approved. */
const approve = async ({ sim }: RunningStack, wabaId: string): Promise<void> => {
  const body = { waba_id: wabaId, event: 'APPROVED' };
  for (let tried = 0; tried < approveTries; tried++) {
    const url = `${sim}/templates/otp_code/status`;
    if ((await call({ method: 'POST', url, body })).status === 200) return;
    await sleep(200);
  }
  throw new Error('the template of a connected number did not come to the simulator');
};

/** An account with credit and a WhatsApp number of its own, so that nothing but the guard stops its sends. */
const makeSender = async (stack: RunningStack, name: string, from: string): Promise<Sender> => {
  const { api, ops, sim, ops_token: opsToken } = stack;
  const email = `${name}-${randomBytes(6).toString('hex')}@example.com`;
  const password = randomBytes(18).toString('base64url');
  const person = { name, phone: `+1415555${randomInt(1_000, 10_000)}` };
  const made = need(
    await call({
      ...{ method: 'POST', url: `${api}/v1/clients/register`, from },
      body: { email, password, name: person.name, phone: person.phone },
    }),
    'register',
  );
  const { id } = made.data.account as { id: string };
  const login = { method: 'POST', url: `${api}/v1/clients/login`, from, body: { email, password } };
  const { session_token: session } = need(await call(login), 'login').data as {
    session_token: string;
  };
  const secret = await call({
    ...{ method: 'POST', url: `${api}/v1/clients/signup-secret`, from, token: session },
  });
  const { live: key } = need(secret, 'signup-secret').data.keys as { live: string };
  const credit = { kind: 'deposit', amount: 50, note: 'attack run' };
  const booked = await call({
    ...{ method: 'POST', url: `${ops}/ops/api/accounts/${id}/credit`, token: opsToken },
    body: credit,
  });
  need(booked, 'credit');
  const business = need(
    await call({ method: 'POST', url: `${sim}/businesses`, body: { registered: true } }),
    'a business at the simulator',
  ).data as { waba_id: string; phone_number_id: string; access_token: string };
  const connection = await call({
    ...{ method: 'POST', url: `${api}/v1/clients/connect-whatsapp`, from, token: session },
    body: {
      phone_number_id: business.phone_number_id,
      waba_id: business.waba_id,
      access_token: business.access_token,
    },
  });
  need(connection, 'connect-whatsapp');
  const template = { method: 'POST', url: `${api}/v1/clients/waba/template/create`, from };
  need(await call({ ...template, token: session }), 'template');
  await approve(stack, business.waba_id);
  return { name, key };
};

const send = ({ api }: RunningStack, { key }: Sender, phone: string): Promise<Answer> =>
  call({ method: 'POST', url: `${api}/v1/otp/send`, token: key, body: { phone } });

const templateTries = 40;

/** A template that was just approved is known a moment later. */
const sendWhenReady = async (stack: RunningStack, sender: Sender, phone: string) => {
  for (let tried = 1; ; tried++) {
    const answer = await send(stack, sender, phone);
    if (answer.error.code !== 'TEMPLATE_NOT_READY' || tried === templateTries) return answer;
    await sleep(250);
  }
};

const codeAt = async ({ sim }: RunningStack, phone: string): Promise<string> => {
  const url = `${sim}/phones/${encodeURIComponent(phone)}/messages`;
  for (let tried = 0; tried < 40; tried++) {
    const { data } = await call({ method: 'GET', url });
    const { messages = [] } = data as { messages?: { code?: string | null }[] };
    const code = messages.find((message) => message.code)?.code;
    if (code) return code;
    await sleep(100);
  }
  return '';
};

/** Sends and enters the code; answers whether both went well. */
const sendAndVerify = async (stack: RunningStack, sender: Sender, phone: string) => {
  const sent = await sendWhenReady(stack, sender, phone);
  if (sent.status !== 200) return false;
  const body = { phone, code: await codeAt(stack, phone) };
  const url = `${stack.api}/v1/otp/verify`;
  return (await call({ method: 'POST', url, token: sender.key, body })).status === 200;
};

const attackers = 4;
const rounds = 32;
const pauseMs = 400;
/** Sixty open codes are enough for a hold; the rest goes out while it is counted and told. */
const sentMost = 100;

const sources = (): string => `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(2, 255)}`;

const run = async (stack: RunningStack): Promise<Figure[]> => {
  const block = `+20100${randomInt(100, 1_000)}`;
  const number = (index: number): string => `${block}${1_000 + index}`;
  const good = await makeSender(stack, 'good', sources());
  const bad: Sender[] = [];
  for (let index = 0; index < attackers; index++) {
    bad.push(await makeSender(stack, `attacker${index}`, sources()));
  }
  let entered = 0;
  for (let index = 0; index < 8; index++) {
    if (await sendAndVerify(stack, good, number(8_000 + index))) entered += 1;
  }
  const refusals = new Map<string, number>();
  const held = new Set<string>();
  let out = 0;
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      bad.map(async (sender, index) => {
        const phone = number(round * attackers + index);
        const answer = await (round === 0
          ? sendWhenReady(stack, sender, phone)
          : send(stack, sender, phone));
        return { sender, answer };
      }),
    );
    for (const { sender, answer } of answers) {
      if (answer.status === 200) {
        out += 1;
        continue;
      }
      const why = String(answer.error.reason ?? answer.error.code);
      refusals.set(why, (refusals.get(why) ?? 0) + 1);
      if (why === 'fraud_protection') held.add(sender.name);
    }
    await sleep(pauseMs);
  }
  let after = 0;
  for (let index = 0; index < 3; index++) {
    if (await sendAndVerify(stack, good, number(8_100 + index))) after += 1;
  }
  const told = [...refusals].map(([why, count]) => `${count} ${why}`).join(', ') || 'none';
  return [
    {
      what: `codes to one block of 10,000 numbers from ${attackers} accounts, none entered`,
      value: `${out} of ${attackers * rounds} went out; refused: ${told}`,
      bound: `at most ${sentMost}`,
      holds: out <= sentMost && out > 0,
    },
    {
      what: 'accounts that were held by the guard',
      value: `${held.size} of ${attackers}`,
      bound: `${attackers}`,
      holds: held.size === attackers,
    },
    {
      what: 'codes of the good account there that were sent and entered',
      value: `${entered} of 8 before, ${after} of 3 after`,
      bound: '8 and 3',
      holds: entered === 8 && after === 3,
    },
  ];
};

export const spreadPumping: Attack = {
  name: 'spread-pumping',
  about: 'Four accounts send codes that nobody enters to one block of numbers.',
  run,
};
