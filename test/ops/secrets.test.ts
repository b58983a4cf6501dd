// What operators do about access and secrets: ending the sessions of an account, and sealing all secrets anew.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createSealer, type NamedKey } from '../../lib/kernel/secrets.ts';
import { type ResealStep, resealStep } from '../../lib/ops/reseal.ts';
import { createResealStore } from '../../lib/ops/reseal-store.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { aNumber } from '../support/phones.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;

test.before(async () => {
  stack = await startStack('opssecrets', { workers: [] });
  ops = await startOps(stack);
});
test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

test.serial('an operator ends all sessions of an account, on record; its keys go on', async (t) => {
  const { accountId, session, live } = await stack.customer();
  const path = `/ops/api/accounts/${accountId}/logout`;
  t.is((await ops.post(path, {})).data.ended, 1);
  await eventually(t, async () =>
    (await session.get('/v1/clients/me')).status === 401 ? true : undefined,
  );
  t.is((await live.get('/v1/clients/me')).status, 200);
  const [act] = (await ops.get('/ops/api/audit?limit=1')).data.items;
  t.like(act, { action: 'account.logout', subject: accountId });
  t.is((await ops.post(path, {})).data.ended, 0);
  const [entry] = await stack.api.securityLog.list(accountId, { before: undefined, limit: 1 });
  t.like(entry, { action: 'sessions_ended', by: 'operator' });
});

const named = (id: string): NamedKey => ({ id, key: randomBytes(32) });

test.serial(
  'secrets are sealed anew step by step, repeatably, until the old keys may go',
  async (t) => {
    const { accountId, session, live } = await stack.customer();
    await live.post('/v1/totp/enroll', { phone: aNumber() });
    await session.post('/v1/clients/security/mfa/enroll', undefined);
    const nothing = (await ops.post('/ops/api/secrets/reseal', {})).data;
    t.deepEqual(nothing, { resealed: 0, failed: 0, next: null, left: [] });

    const { sealingKeys, totpKeys } = stack.config;
    const [sealing, totp] = [named('fresh'), named('fresh-totp')];
    const depsWith = (keys: NamedKey[], seedKeys: NamedKey[]) => ({
      reseals: createResealStore(stack.api.db),
      sealer: createSealer(keys),
      totpSealer: createSealer(seedKeys),
      config: { sealingKeys: keys, totpKeys: seedKeys },
      // Each look at it is the end of a step.
      clock: { now: () => (time += 10_000) },
      log: silentLog,
    });
    let time = 0;
    const deps = depsWith([sealing, ...sealingKeys], [totp, ...totpKeys]);
    const steps: ResealStep[] = [];
    let after: string | undefined;
    do {
      const step = await resealStep(deps, after);
      steps.push(step);
      after = step.next ?? undefined;
    } while (after !== undefined);
    t.true(steps.length > 3, 'a step ends when its time is over, and the next one goes on');
    t.true(steps.reduce((sum, { resealed }) => sum + resealed, 0) >= 3);
    t.deepEqual(steps.at(-1)?.left, [], 'nothing is left under an older key');
    const again = await resealStep({ ...deps, clock: { now: () => 0 } }, undefined);
    t.deepEqual(again, { resealed: 0, failed: 0, next: null, left: [] });

    // An event on its way to a former address carries secrets of then, and goes by itself.
    const pending = { present: 'v1.older.x', before: `v1.${sealing.id}.x`, beforeUntil: 0 };
    const id = idBytes(newId());
    await stack.api.db('former_address_events').insert({
      id,
      account_id: idBytes(accountId),
      url: 'https://h.example',
      secrets: JSON.stringify(pending),
      event: '{}',
      next_attempt_at: 0,
    });
    const { left } = await resealStep({ ...deps, clock: { now: () => 0 } }, undefined);
    const what = 'events on their way to former webhook addresses';
    t.deepEqual(left, [{ what, keys: 'SEALING_KEYS', count: 1 }]);
    const renewed = JSON.stringify({ ...pending, present: null });
    await stack.api.db('former_address_events').where({ id }).update({ secrets: renewed });
    t.deepEqual((await resealStep({ ...deps, clock: { now: () => 0 } }, undefined)).left, []);

    const withoutOld = depsWith([sealing], [totp]);
    const { accounts, clock } = stack.api;
    const secrets = await signingSecrets({ accounts, clock, sealer: withoutOld.sealer }, accountId);
    t.regex(secrets[0] ?? '', /^whsec_/);
    await t.throwsAsync(resealStep(deps, '99:x'), { message: /not valid/ });

    // A process that does not know the newest key opens nothing, changes nothing, and says what is left.
    const blind = (await ops.post('/ops/api/secrets/reseal', {})).data as ResealStep;
    t.is(blind.resealed, 0);
    t.true(blind.failed > 0);
    t.true(blind.left.some(({ what }) => what === 'webhook secrets'));
    const [row] = await stack.api
      .db('accounts')
      .where({ id: idBytes(accountId) })
      .select('webhook_secret');
    t.regex(String(row?.webhook_secret), /^v1\.fresh\./);
  },
);
