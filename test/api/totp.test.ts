// TOTP over HTTP: the state table of the contract in both modes, single use, the lockout, and the log.

import test from 'ava';
import sinon from 'sinon';
import { day, minute } from '../../lib/kernel/clock.ts';
import { demoSecret } from '../../lib/totp/rules.ts';
import { ownerChange } from '../support/acts.ts';
import { appCode } from '../support/authenticator.ts';
import { listenForEvents } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { aNumber } from '../support/phones.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';
import { createApp, type TotpPhone, totpPhone } from '../support/totp-phone.ts';

let stack: Stack;
const clock = createHandClock();
const { nextStep, confirm, wrongFor } = createApp(clock);
const modes = ['live', 'test'] as const;

test.before(async () => {
  stack = await startStack('totp', { clock, workers: ['analytics', 'billing'] });
});
test.after.always(() => stack?.close());

/** Brings a fresh phone into a state; answers its secret where it has one. */
const states: Record<string, (phone: TotpPhone) => Promise<string | undefined>> = {
  'never enrolled': async () => undefined,
  unconfirmed: async (phone) => String((await phone.enroll()).data.secret),
  confirmed: confirm,
  disabled: async (phone) => {
    await confirm(phone);
    await phone.disable();
    return undefined;
  },
  replaced: async (phone) => {
    await confirm(phone);
    return String((await phone.enroll({ replace: true })).data.secret);
  },
};

/** The table of spec section 3: what each call answers in each state. */
const table: Record<string, Record<string, string>> = {
  'never enrolled': {
    enroll: 'fresh',
    replace: 'fresh',
    verify: 'TOTP_NOT_ENROLLED',
    wrong: 'TOTP_NOT_ENROLLED',
  },
  unconfirmed: { enroll: 'fresh', replace: 'fresh', verify: 'first', wrong: 'false' },
  confirmed: { enroll: 'ALREADY_ENROLLED', replace: 'replaced', verify: 'true', wrong: 'false' },
  disabled: {
    enroll: 'fresh',
    replace: 'fresh',
    verify: 'TOTP_NOT_ENROLLED',
    wrong: 'TOTP_NOT_ENROLLED',
  },
  replaced: { enroll: 'fresh', replace: 'fresh', verify: 'first', wrong: 'false' },
};

const outcomeOf = async (
  phone: TotpPhone,
  call: string,
  secret: string | undefined,
): Promise<string> => {
  nextStep();
  if (call === 'enroll' || call === 'replace') {
    const answer = await phone.enroll(call === 'replace' ? { replace: true } : {});
    if (answer.error.code) return answer.error.code;
    return answer.data.already_enrolled ? 'replaced' : 'fresh';
  }
  const code =
    call === 'wrong' ? wrongFor(secret ?? demoSecret) : appCode(secret ?? demoSecret, clock.now());
  const answer = await phone.verify(code);
  if (answer.error.code) return answer.error.code;
  return answer.data.first_confirm ? 'first' : String(answer.data.verified);
};

for (const mode of modes) {
  for (const [state, row] of Object.entries(table)) {
    test.serial(`${mode}, ${state}: every call answers as the contract's table says`, async (t) => {
      const customer = await stack.customer();
      for (const [call, expected] of Object.entries(row)) {
        const phone = totpPhone(customer[mode]);
        const secret = await states[state]?.(phone);
        t.is(await outcomeOf(phone, call, secret), expected, call);
      }
      const phone = totpPhone(customer[mode]);
      await states[state]?.(phone);
      for (let time = 0; time < 2; time++)
        t.deepEqual((await phone.disable()).data, { disabled: true });
      t.is((await phone.verify('123456')).error.code, 'TOTP_NOT_ENROLLED');
    });
  }
}

test.serial(
  'a replaced secret is dead at once, and the new one counts once confirmed',
  async (t) => {
    const { live } = await stack.customer();
    const phone = totpPhone(live);
    const old = await confirm(phone);
    const replaced = await phone.enroll({ replace: true });
    t.true(replaced.data.already_enrolled);
    t.is((await phone.verify(appCode(old, clock.now()))).data.verified, false);
    const secret = String(replaced.data.secret);
    t.like((await phone.verify(appCode(secret, clock.now()))).data, {
      verified: true,
      first_confirm: true,
    });
    nextStep();
    t.like((await phone.verify(appCode(secret, clock.now()))).data, {
      verified: true,
      first_confirm: false,
    });
  },
);

test.serial(
  'what enroll answers is what an app needs; the sandbox has one public secret',
  async (t) => {
    const customer = await stack.customer();
    await stack.api.accounts.change(customer.accountId, { company: 'Acme: Inc' }, ownerChange);
    await stack.api.revocations.announce();
    const { data } = await totpPhone(customer.live).enroll();
    t.regex(String(data.secret), /^[A-Z2-7]{32}$/);
    t.true(String(data.otpauth_url).startsWith('otpauth://totp/Acme%20Inc:%2B1'));
    t.true(
      String(data.otpauth_url).includes(`secret=${data.secret}&issuer=Acme%20Inc&algorithm=SHA1`),
    );
    for (let time = 0; time < 2; time++) {
      t.is((await totpPhone(customer.test).enroll()).data.secret, demoSecret);
    }
  },
);

test.serial('codes of an independent app are taken one step off, and not two', async (t) => {
  const { live } = await stack.customer();
  const phone = totpPhone(live);
  const secret = await confirm(phone);
  clock.forward(3 * minute);
  nextStep();
  const at = clock.now();
  for (const [steps, verified] of [
    [-2, false],
    [-1, true],
    [0, true],
    [1, true],
    [2, false],
  ] as const) {
    t.is((await phone.verify(appCode(secret, at, steps))).data.verified, verified, String(steps));
  }
});

test.serial(
  'of fifty who bring one code at once, one succeeds; a used code is no guess',
  async (t) => {
    const { live } = await stack.customer();
    const phone = totpPhone(live);
    const { secret } = (await phone.enroll()).data as { secret: string };
    nextStep();
    const code = appCode(secret, clock.now());
    const answers = await Promise.all(Array.from({ length: 50 }, () => phone.verify(code)));
    t.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    t.is(answers.filter(({ data }) => data.verified).length, 1);
    t.is(answers.filter(({ data }) => data.first_confirm).length, 1);
    const again = await phone.verify(code);
    t.like(again.data, { verified: false, attempts_remaining: 5 });
  },
);

test.serial(
  'five wrong codes block the phone for 15 minutes, the right code included',
  async (t) => {
    const { live } = await stack.customer();
    const phone = totpPhone(live);
    const secret = await confirm(phone);
    for (const left of [4, 3, 2, 1, 0]) {
      t.like((await phone.verify(wrongFor(secret))).data, {
        verified: false,
        attempts_remaining: left,
      });
    }
    const blocked = await phone.verify(appCode(secret, clock.now()));
    t.is(blocked.status, 429);
    t.like(blocked.error, {
      code: 'TOO_MANY_ATTEMPTS',
      dimension: 'recipient',
      limit: 5,
      window_seconds: 900,
    });
    t.is(blocked.headers.get('retry-after'), '900');
    t.is(
      (await live.verify(phone.phone, '123456')).error.code,
      'OTP_NOT_FOUND',
      'codes are counted apart',
    );
    clock.forward(15 * minute);
    nextStep();
    t.like((await phone.verify(appCode(secret, clock.now()))).data, {
      verified: true,
      attempts_remaining: 5,
    });
  },
);

test.serial('a hundred guesses at once are five guesses', async (t) => {
  const { live } = await stack.customer();
  const phone = totpPhone(live);
  const secret = await confirm(phone);
  const wrong = wrongFor(secret);
  const answers = await Promise.all(Array.from({ length: 40 }, () => phone.verify(wrong)));
  t.is(answers.filter(({ status }) => status === 200).length, 5);
});

test.serial('an enrollment that nobody confirms for a day is none', async (t) => {
  const { live } = await stack.customer();
  const phone = totpPhone(live);
  const { secret } = (await phone.enroll()).data as { secret: string };
  clock.forward(day);
  nextStep();
  t.is((await phone.verify(appCode(secret, clock.now()))).error.code, 'TOTP_NOT_ENROLLED');
});

test.serial('enrolling, verifying and ending are told as events', async (t) => {
  const heard = await Promise.all(
    ['totp.enrolled', 'totp.verified', 'totp.disabled'].map((type) => listenForEvents(stack, type)),
  );
  const { live, accountId } = await stack.customer();
  const phone = totpPhone(live);
  await confirm(phone);
  await phone.disable();
  await phone.disable();
  await eventually(t, () => heard[2]?.heard[0]);
  t.deepEqual(
    heard.map(({ heard: events }) => events.map(({ type, account_id: id }) => [type, id])),
    [
      [['totp.enrolled', accountId]],
      [['totp.verified', accountId]],
      [['totp.disabled', accountId]],
    ],
  );
  await Promise.all(heard.map(({ close }) => close()));
});

test.serial('a verification stands although nobody could be told of it', async (t) => {
  const { live } = await stack.customer();
  const phone = totpPhone(live);
  const secret = await confirm(phone);
  const lost = sinon.stub(stack.api.announcer, 'announce').rejects(new Error('the broker is gone'));
  const code = appCode(secret, clock.now());
  t.like((await phone.verify(code)).data, { verified: true });
  lost.restore();
  t.like((await phone.verify(code)).data, { verified: false }, 'and its code is used up');
});

test.serial('bad input names its field', async (t) => {
  const { live } = await stack.customer();
  const wrong: [string, object, string][] = [
    ['enroll', {}, 'phone'],
    ['enroll', { phone: '123' }, 'phone'],
    ['enroll', { phone: aNumber(), replace: 'yes' }, 'replace'],
    ['enroll', { phone: aNumber(), secret: 'x' }, 'secret'],
    ['verify', { phone: aNumber() }, 'code'],
    ['verify', { phone: aNumber(), code: 123456 }, 'code'],
    ['verify', { phone: aNumber(), code: '12345' }, 'code'],
    ['verify', { phone: aNumber(), code: '1234567' }, 'code'],
    ['disable', { phone: '+0123456789' }, 'phone'],
    ['disable', { phone: aNumber(), force: true }, 'force'],
  ];
  for (const [path, body, field] of wrong) {
    const answer = await live.post(`/v1/totp/${path}`, body);
    t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field }] }, JSON.stringify(body));
  }
  t.is((await live.post('/v1/totp/enroll', { phone: '+10000000' })).error.code, 'INVALID_PHONE');
});

test.serial('the numbers of the sandbox produce the errors they stand for', async (t) => {
  const { test: sandbox, live } = await stack.customer();
  const errors: [string, string, string][] = [
    ['enroll', '+15550105035', 'TOTP_NOT_CONFIGURED'],
    ['enroll', '+15550104001', 'INVALID_PHONE'],
    ['enroll', '+15550104291', 'RATE_LIMIT_EXCEEDED'],
    ['verify', '+15550105035', 'TOTP_NOT_CONFIGURED'],
    ['verify', '+15550104292', 'TOO_MANY_ATTEMPTS'],
    ['verify', '+15550104021', 'INSUFFICIENT_CREDITS'],
    ['verify', '+15550104022', 'DEPOSIT_REQUIRED'],
    ['verify', '+15550104294', 'SPEND_CAP_EXCEEDED'],
    ['verify', '+15550105002', 'BILLING_ERROR'],
    ['verify', '+15550105003', 'INTERNAL_ERROR'],
    ['disable', '+15550105034', 'SERVICE_UNAVAILABLE'],
  ];
  for (const [path, phone, code] of errors) {
    const body = { phone, ...(path === 'verify' ? { code: '123456' } : {}) };
    t.is((await sandbox.post(`/v1/totp/${path}`, body)).error.code, code, `${path} ${phone}`);
    if (code === 'TOTP_NOT_CONFIGURED' && path === 'verify') {
      t.is((await live.post('/v1/totp/verify', body)).error.code, 'TOTP_NOT_ENROLLED');
    }
  }
});
