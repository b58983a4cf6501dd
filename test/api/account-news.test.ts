// What accounts are told of themselves is told although the broker is away after the commit, or the process dies there.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { connectWithToken } from '../../lib/connections/connect.ts';
import { handleNews } from '../../lib/connections/news.ts';
import type { EventWire } from '../../lib/jobs.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import { tellLeftNews } from '../../lib/messages/news.ts';
import { suspendAccount } from '../../lib/security/suspend.ts';
import { appCode } from '../support/authenticator.ts';
import { aBusiness, connect } from '../support/connections.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

// Without the billing worker nobody tells what is left but the test.
test.before(async () => {
  stack = await startStack('news', { clock, workers: [] });
});
test.after.always(() => stack?.close());

const security = '/v1/clients/security';

type Change = {
  type: string;
  data: Record<string, unknown>;
  /** Leads to where the change is possible, and answers the change itself. */
  prepare(t: ExecutionContext, who: Customer): Promise<() => Promise<{ status: number }>>;
};

const done = { status: 200 };

const protect = async (who: Customer) => {
  const { data } = await who.session.post(`${security}/mfa/enroll`, undefined);
  const code = appCode(String(data.secret), clock.now());
  const confirmed = await who.session.post(`${security}/mfa/confirm`, { code });
  return confirmed.data.recovery_codes as string[];
};

const own = async (who: Customer) => {
  const business = await aBusiness(stack);
  await connect(who.live, business);
  return business;
};

const change = (
  type: string,
  data: Record<string, unknown>,
  prepare: Change['prepare'],
): Change => ({ type, data, prepare });

const changes: Change[] = [
  change('security.mfa_disabled', { by: 'password' }, async (_, who) => {
    await protect(who);
    return () => who.session.post(`${security}/mfa/disable`, { password: who.password });
  }),
  change('security.recovery_codes_low', { recovery_codes_remaining: 2 }, async (t, who) => {
    const codes = await protect(who);
    for (const code of codes.slice(0, 7)) {
      t.is((await who.session.post(`${security}/reauth`, { code })).status, 200);
    }
    return () => who.session.post(`${security}/reauth`, { code: codes[7] });
  }),
  change('account.suspended', { reason: 'chargebacks' }, async (_, { accountId }) => async () => {
    await suspendAccount(stack.api, { accountId, reason: 'chargebacks', requestId: 'ops' });
    return done;
  }),
  change('totp.disabled', {}, async (_, who) => {
    const phone = stack.phone().number;
    await who.test.post('/v1/totp/enroll', { phone });
    return () => who.test.post('/v1/totp/disable', { phone });
  }),
  change('totp.enrolled', {}, async (_, who) => {
    const phone = stack.phone().number;
    const { data } = await who.test.post('/v1/totp/enroll', { phone });
    const code = appCode(String(data.secret), clock.now());
    return () => who.test.post('/v1/totp/verify', { phone, code });
  }),
  change('whatsapp.connected', {}, async (_, who) => {
    const business = await aBusiness(stack);
    return () => connect(who.live, business);
  }),
  change('whatsapp.disconnected', {}, async (_, who) => {
    await own(who);
    return () => who.live.post('/v1/clients/waba/disconnect', undefined);
  }),
  change(
    'template.status_changed',
    { status: 'paused', previous_status: 'not_created' },
    async (_, who) => {
      const { waba_id } = await own(who);
      const template = { name: 'otp_code', language: 'en_US' };
      const about = { kind: 'template' as const, at: clock.now(), event: 'PAUSED' };
      return async () => {
        await handleNews(stack.worker, [{ ...about, waba_id, template, ban_state: null }]);
        return done;
      };
    },
  ),
  change('template.status_changed', { previous_status: 'not_created' }, async (_, who) => {
    await own(who);
    return () => who.live.post('/v1/clients/waba/template/create', undefined);
  }),
];

/** Runs `work` while nothing can be announced, and answers what was tried. */
const unheard = async (work: () => Promise<void>): Promise<EventWire[]> => {
  const away = [stack.api, stack.worker].map(({ announcer }) =>
    sinon.stub(announcer, 'announce').rejects(new Error('the broker is away')),
  );
  try {
    await work();
  } finally {
    for (const one of away) one.restore();
  }
  return away.flatMap(({ args }) => args.map(([event]) => event));
};

/** Tells what is left, and answers what of it is about the account. */
const tellLeft = async (accountId: string): Promise<EventWire[]> => {
  const told = sinon.spy(stack.worker.announcer, 'announce');
  try {
    await tellLeftNews(stack.worker);
    return told.args.map(([event]) => event).filter(({ account_id: of }) => of === accountId);
  } finally {
    told.restore();
  }
};

for (const [number, { type, data, prepare }] of changes.entries()) {
  test.serial(
    `${type} is told later, once, when the broker was away (${number + 1})`,
    async (t) => {
      const who = await stack.customer();
      const act = await prepare(t, who);
      const tried = await unheard(async () => {
        t.is((await act()).status, 200, 'the change stands, and is not said to have failed');
      });
      t.deepEqual(await tellLeft(who.accountId), [], 'whoever wrote it is left a while to tell it');
      clock.forward(20_000);
      const told = (await tellLeft(who.accountId)).filter((event) => event.type === type);
      t.is(told.length, 1);
      t.like(told[0], { type, data: { ...told[0]?.data, ...data } });
      t.is(told[0]?.id, tried.find((event) => event.type === type)?.id, 'the same event');
      t.deepEqual(await tellLeft(who.accountId), []);
    },
  );
}

test.serial('what was told at once is not told again', async (t) => {
  const who = await stack.customer();
  await own(who);
  clock.forward(20_000);
  t.deepEqual(await tellLeft(who.accountId), []);
  const left = await stack.api.db('account_news').where({ account_id: idBytes(who.accountId) });
  t.deepEqual(left, []);
});

test.serial('what did not come about is not told', async (t) => {
  const [holder, who] = [await stack.customer(), await stack.customer()];
  const { phone_number_id: phoneNumberId, access_token: token } = await own(holder);
  const given = { requestId: 'r', wabaId: null, displayName: null, phoneNumberId, token };
  const act = { by: 'operator', credentialId: null, ip: null, requestId: null } as const;
  const connecting = connectWithToken(stack.api, { accountId: who.accountId, act, ...given });
  await t.throwsAsync(connecting);
  clock.forward(20_000);
  t.deepEqual(await tellLeft(who.accountId), []);
});
