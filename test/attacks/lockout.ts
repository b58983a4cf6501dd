// Strangers guess at an owner's password and reset code from many addresses, to keep the owner out.
import { randomInt } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPhone } from '../support/phones.ts';
import type { Attack, Figure, RunningStack } from './attack.ts';

type Answer = { status: number; code: string; data: Record<string, unknown> };
type Call = (path: string, body: object, token?: string) => Promise<Answer>;

const answerMs = 15_000;

/** Calls of POST /v1/clients/… from one loopback address. */
const from =
  ({ api }: RunningStack, localAddress: string): Call =>
  (path, body, token) =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(api);
      const text = JSON.stringify(body);
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (token !== undefined) headers.authorization = `Bearer ${token}`;
      const call = request({
        hostname,
        port,
        localAddress,
        headers,
        path: `/v1/clients/${path}`,
        method: 'POST',
        agent: false,
        timeout: answerMs,
      });
      call.on('error', reject).on('timeout', () => call.destroy(new Error('no answer')));
      call.on('response', (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const said = JSON.parse(Buffer.concat(parts).toString() || '{}');
          const { data = {}, error = {} } = said;
          resolve({ status: response.statusCode ?? 0, code: error.code ?? '', data });
        });
      });
      call.end(text);
    });

const password = 'the owner’s long password';
const wrong = 'not the owner’s password';

/** How many calls were answered with `code`, so judged. */
const judged = (answers: readonly Answer[], code: string): number =>
  answers.filter((answer) => answer.code === code).length;

const succeeds = (what: string, { status, code }: Answer): Figure => ({
  what,
  value: `${status}${code ? ` ${code}` : ''}`,
  bound: '200',
  holds: status === 200,
});

/** Logs in, again while the service is only busy. */
const patiently = async (call: () => Promise<Answer>): Promise<Answer> => {
  for (let attempt = 1; ; attempt++) {
    const answer = await call();
    if (answer.status !== 503 || attempt === 5) return answer;
    await sleep(1_000);
  }
};

const run = async (stack: RunningStack): Promise<Figure[]> => {
  // A network of its own for each run: limits of the runs before do not count.
  const network = `127.${randomInt(1, 250)}.${randomInt(0, 250)}`;
  const owner = from(stack, `${network}.1`);
  const strangers = Array.from({ length: 10 }, (_, at) => from(stack, `${network}.${at + 10}`));
  const phone = createPhone(stack.sim);
  const email = `owner-${Date.now()}@tessera.example`;
  await patiently(() => owner('register', { email, password, name: 'Ada', phone: phone.number }));
  const session = await patiently(() => owner('login', { email, password }));
  const token = String(session.data.session_token);

  const logins: Answer[] = [];
  for (const stranger of strangers.slice(0, 7)) {
    for (let time = 0; time < 10; time++) {
      logins.push(await patiently(() => stranger('login', { email, password: wrong })));
    }
  }
  // The length of reset codes, by what is taken.
  const [probe] = strangers.slice(-1);
  const eight = await probe?.('password/reset', { email, code: '00000000', new_password: wrong });
  const code = eight?.code === 'VALIDATION_ERROR' ? '000000' : '00000000';
  const resets: Answer[] = eight?.code === 'INVALID_CODE' ? [eight] : [];
  for (const stranger of strangers.slice(7)) {
    for (let time = 0; time < 5; time++) {
      const guess = { email, code, new_password: wrong };
      resets.push(await patiently(() => stranger('password/reset', guess)));
    }
  }

  const passwords = judged(logins, 'INVALID_CREDENTIALS');
  const codes = judged(resets, 'INVALID_CODE');
  const login = await patiently(() => owner('login', { email, password }));
  const changed = 'another long password';
  const body = { current_password: password, new_password: changed };
  const change = await patiently(() => owner('password', body, token));
  await owner('password/forgot', { email });
  const until = Date.now() + answerMs;
  while ((await phone.code()) === '' && Date.now() < until) await sleep(250);
  const fresh = { email, code: await phone.code(), new_password: 'a third long password' };
  const reset = await patiently(() => owner('password/reset', fresh));
  return [
    {
      what: 'wrong passwords of strangers that were judged, of 70',
      value: String(passwords),
      bound: 'at most 50',
      holds: passwords <= 50,
    },
    {
      what: `wrong reset codes of strangers that were judged, of ${resets.length}`,
      value: `${codes}, of ${code.length} digits`,
      bound: 'at most 5, of 8 digits',
      holds: codes <= 5 && code.length === 8,
    },
    succeeds('the owner logs in from an address used before', login),
    succeeds('the owner changes the password in an open session', change),
    succeeds('the owner resets the password', reset),
  ];
};

export const lockout: Attack = {
  name: 'lockout',
  about: 'Strangers guess passwords and reset codes until the owner cannot get in.',
  run,
};
