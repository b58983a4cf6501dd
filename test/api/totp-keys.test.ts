// The keys that seal TOTP secrets: none at all, and their rotation while everything runs.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { listen } from '../../api/listen.ts';
import { createApiApp } from '../../lib/app.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { resealStep } from '../../lib/ops/reseal.ts';
import { createResealStore } from '../../lib/ops/reseal-store.ts';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
import { aNumber } from '../support/phones.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('totpkeys', { workers: [] });
});
test.after.always(() => stack?.close());

const named = (id: string) => ({ id, key: randomBytes(32) });

/** Another API process over the same data with these keys. */
const withKeys = async <T>(
  totpKeys: readonly { id: string; key: Buffer }[],
  work: (url: string, app: Awaited<ReturnType<typeof createApiApp>>) => Promise<T>,
): Promise<T> => {
  const config = { ...stack.config, totpKeys: [...totpKeys] };
  const app = await createApiApp({ config, log: silentLog, processName: 'api2' });
  const door = await listen(app);
  try {
    return await work(`http://127.0.0.1:${door.port}`, app);
  } finally {
    await door.close();
    await app.close();
  }
};

test('without a key TOTP answers 503 TOTP_NOT_CONFIGURED, and the rest goes on', async (t) => {
  const { live } = await stack.customer();
  await withKeys([], async (url) => {
    const client = createClient(url, live.key);
    for (const [path, more] of [
      ['enroll', {}],
      ['verify', { code: '123456' }],
    ] as const) {
      const answer = await client.post(`/v1/totp/${path}`, { phone: aNumber(), ...more });
      t.is(answer.status, 503);
      t.is(answer.error.code, 'TOTP_NOT_CONFIGURED');
      t.truthy(answer.headers.get('retry-after'));
    }
    t.is((await client.post('/v1/totp/disable', { phone: aNumber() })).status, 200);
    t.is((await client.get('/v1/clients/me')).status, 200);
  });
});

test('keys rotate while codes are verified; then the old one can go', async (t) => {
  const { live } = await stack.customer();
  const [old, fresh] = [named('old'), named('fresh')];
  const phones = [aNumber(), aNumber(), aNumber()];
  const secrets = new Map<string, string>();
  const verify = async (url: string, phone: string, steps: number) => {
    const code = appCode(secrets.get(phone) ?? '', Date.now(), steps);
    return (await createClient(url, live.key).post('/v1/totp/verify', { phone, code })).data
      .verified;
  };
  await withKeys([old], async (url) => {
    for (const phone of phones) {
      const enrolled = await createClient(url, live.key).post('/v1/totp/enroll', { phone });
      secrets.set(phone, String(enrolled.data.secret));
    }
  });
  await withKeys([fresh, old], async (url, app) => {
    t.true(await verify(url, phones[0] ?? '', -1), 'sealed with the old key');
    const deps = { ...app, reseals: createResealStore(app.db) };
    const step = await resealStep(deps, undefined);
    t.is(step.resealed, 2, 'the one that was used was sealed anew by its use');
    t.deepEqual(step.left, []);
    t.is((await resealStep(deps, undefined)).resealed, 0);
  });
  await withKeys([fresh], async (url) => {
    for (const phone of phones) t.true(await verify(url, phone, 1), 'the old key is gone');
  });
});
