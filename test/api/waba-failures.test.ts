// Connecting an own WhatsApp number while the provider fails at each step: nothing is left behind, and a repeat works.
import test, { type ExecutionContext } from 'ava';
import type { EventWire } from '../../lib/jobs.ts';
import {
  aBusiness,
  aCode,
  type Business,
  captureEvents,
  connect,
  detailsOf,
  type Fault,
  fault,
  isRefused,
  isUnavailable,
  signUp,
} from '../support/connections.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let events: EventWire[];

test.before(async () => {
  stack = await startStack('wabaf', { workers: [], settings: { WHATSAPP_TIMEOUT_MS: '3000' } });
  events = captureEvents(stack);
});
test.after.always(() => stack?.close());

const eventsOf = ({ accountId }: Customer): string[] =>
  events.filter((event) => event.account_id === accountId).map(({ type }) => type);

const nothingConnected = async (t: ExecutionContext, customer: Customer, why: string) => {
  t.is(await detailsOf(customer), null, why);
  t.deepEqual(eventsOf(customer), [], why);
  const sender = await stack.worker.resolveSender(customer.accountId);
  t.is(sender?.shared, true, why);
};

type Step = (business: Business) => string;
const steps: Record<string, { call: Step; field: string }> = {
  number: { call: (b) => `GET ${b.phone_number_id}`, field: 'phone_number_id' },
  account: { call: (b) => `GET ${b.waba_id}`, field: 'waba_id' },
  numbers: { call: (b) => `GET ${b.waba_id}/phone_numbers`, field: 'waba_id' },
  templates: { call: (b) => `GET ${b.waba_id}/message_templates`, field: 'waba_id' },
  registration: { call: (b) => `POST ${b.phone_number_id}/register`, field: 'phone_number_id' },
  subscription: { call: (b) => `POST ${b.waba_id}/subscribed_apps`, field: 'waba_id' },
};

type Failure = Omit<Fault, 'call'>;
/** undefined: unavailable; token: where the token came from; own: the field of the step. */
const failures: [failure: Failure, means: 'token' | 'own' | undefined][] = [
  [{ code: 190 }, 'token'],
  [{ code: 0 }, 'token'],
  [{ code: 10 }, 'token'],
  [{ code: 200 }, 'token'],
  [{ code: 3 }, 'token'],
  [{ code: 100, subcode: 33 }, 'own'],
  [{ code: 33 }, 'own'],
  [{ code: 803 }, 'own'],
  [{ code: 100 }, 'own'],
  [{ code: 368 }, 'own'],
  [{ code: 131031 }, 'own'],
  [{ code: 1 }, undefined],
  [{ code: 2 }, undefined],
  [{ code: 4 }, undefined],
  [{ code: 80007 }, undefined],
  [{ code: 131000 }, undefined],
  [{ code: 133004 }, undefined],
  [{ answer: 'html_502' }, undefined],
  [{ answer: 'cut' }, undefined],
  [{ answer: 'cut', takes_effect: true }, undefined],
];

const fails = async (
  t: ExecutionContext,
  way: 'token' | 'signup',
  step: string,
  cases: typeof failures,
): Promise<void> => {
  const { call, field } = steps[step] ?? { call: () => '', field: '' };
  const customer = await stack.customer();
  // Other accounts' limits are not what this is about.
  for (const [failure, means] of cases) {
    const business = await aBusiness(stack, { registered: false });
    await fault(stack, { call: call(business), ...failure });
    const by = (await stack.customer()).live;
    const answer =
      way === 'token'
        ? await connect(by, business)
        : await signUp(by, business, await aCode(stack, business));
    const tokenField = way === 'token' ? 'access_token' : 'code';
    if (means === undefined) isUnavailable(t, answer);
    else isRefused(t, answer, means === 'token' ? tokenField : field);
    t.is(await stack.api.connections.holder(business.phone_number_id), undefined);
    await fault(stack, { call: call(business), answer: null });
    const repeated = await signUp(customer.live, business, await aCode(stack, business));
    t.is(repeated.status, 200, `${step} ${JSON.stringify(failure)}: ${repeated.text}`);
    const act = { by: 'operator', credentialId: null, ip: null, requestId: null } as const;
    const removing = { act, now: stack.api.clock.now(), newsOf: () => [] };
    await stack.api.connections.remove(customer.accountId, removing);
  }
};

for (const step of Object.keys(steps)) {
  test(`a signup that fails at the ${step} leaves nothing, and a repeat works`, async (t) => {
    // Each account has 30 changes an hour; a repeat of each failure stays below.
    await fails(t, 'signup', step, failures);
  });
}

for (const step of Object.keys(steps)) {
  test(`a connect that fails at the ${step} leaves nothing, and a repeat works`, async (t) => {
    await fails(t, 'token', step, [failures[0], failures[5], failures[12], failures[19]] as never);
  });
}

test.serial('odd answers of the provider do not stand in the way', async (t) => {
  const { managementHttp: http } = stack.api;
  const { send } = http;
  const template = { name: 'otp_code', language: 'en_US', status: 'PENDING' };
  const odd = [null, 7, template, { ...template, status: 'APPROVED' }];
  const languages = [undefined, 'x'.repeat(300), 'ж'].map((language) => ({
    ...template,
    language,
  }));
  const name = { verified_name: 'n'.repeat(600), display_phone_number: '1'.repeat(60) };
  http.send = async (request) => {
    const answer = await send(request);
    const body = JSON.parse(answer.text);
    const templates = request.url.includes('/message_templates');
    const more = templates ? { data: [...odd, ...languages] } : name;
    return { ...answer, text: JSON.stringify({ ...body, ...more }) };
  };
  t.teardown(() => {
    http.send = send;
  });
  const customer = await stack.customer();
  const answer = await connect(customer.live, await aBusiness(stack));
  t.is(answer.status, 200, answer.text);
  t.like(answer.data.connection, { template: { status: 'approved' } });
});

test('a provider that keeps silent is waited for no longer than its time', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await fault(stack, { call: `GET ${business.phone_number_id}`, answer: 'hold' });
  isUnavailable(t, await connect(customer.live, business));
  await nothingConnected(t, customer, 'silence');
});

test('registrations are refused for reasons of their own', async (t) => {
  const reasons: [code: number, issue: RegExp | undefined][] = [
    ...[[133005, /PIN/] as const, [133006, /verified/] as const, [133008, /wait/] as const],
    ...[
      [133009, /wait/] as const,
      [133015, /five minutes/] as const,
      [133016, /72 hours/] as const,
    ],
    ...[[133000, undefined] as const],
  ].map(([code, issue]) => [code, issue]);
  for (const [code, issue] of reasons) {
    const customer = await stack.customer();
    const business = await aBusiness(stack, { registered: false });
    await fault(stack, { call: `POST ${business.phone_number_id}/register`, code });
    const answer = await signUp(customer.live, business, business.code);
    if (issue) isRefused(t, answer, 'phone_number_id', issue);
    else isUnavailable(t, answer);
    await nothingConnected(t, customer, String(code));
  }
});

test('a lost answer to the registration does not lock the number out: the PIN is the same again', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack, { registered: false });
  const call = `POST ${business.phone_number_id}/register`;
  await fault(stack, { call, answer: 'cut', takes_effect: true, times: 1 });
  isUnavailable(t, await signUp(customer.live, business, business.code));
  // The provider has forgotten the registration, but not the PIN.
  await fetch(`${stack.sim.url}/graph/v25.0/${business.phone_number_id}/deregister`, {
    method: 'POST',
    headers: { authorization: `Bearer ${business.access_token}` },
  });
  const again = await signUp(customer.live, business, await aCode(stack, business));
  t.is(again.status, 200, again.text);
});

test.serial('codes that expired, were used or are none say which', async (t) => {
  const call = 'GET oauth/access_token';
  const said: [subcode: number, issue: RegExp][] = [
    ...[[36007, /expired/] as const, [36009, /used already/] as const],
    ...[[36008, /not a code/] as const],
  ].map(([subcode, issue]) => [subcode, issue]);
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  for (const [subcode, issue] of said) {
    await fault(stack, { call, code: 100, subcode });
    isRefused(t, await signUp(customer.live, business, 'x'), 'code', issue);
  }
  // What is wrong with our own app is nothing the customer could mend.
  for (const failure of [{ code: 1 }, { code: 190 }, { code: 2 }, { answer: 'empty' as const }]) {
    await fault(stack, { call, ...failure });
    isUnavailable(t, await signUp(customer.live, business, business.code));
  }
  await fault(stack, { call, answer: null });
  await nothingConnected(t, customer, 'no code was taken');
  t.is((await signUp(customer.live, business, business.code)).status, 200);
  const used = await signUp(customer.live, business, business.code);
  isRefused(t, used, 'code', /used already/);
  t.is(
    (await detailsOf(customer))?.phone_number_id,
    business.phone_number_id,
    'it stays connected',
  );
});
