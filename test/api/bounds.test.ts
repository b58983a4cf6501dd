// Each field of each account route at its bounds, over HTTP: the last value that is taken, the first that is not.
import test, { type ExecutionContext } from 'ava';
import type { JsonRoute, Route } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { accountBounds, type FieldBounds, type RouteBounds } from '../support/bounds.ts';
import { type Answer, type Client, createClient } from '../support/client.ts';
import { aBusiness, aCode } from '../support/connections.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('bounds', { workers: [], settings: { TRUSTED_PROXIES: '1' } });
});
test.after.always(() => stack?.close());

const tags = new Set(['Account', 'API keys', 'Account security', 'Own WhatsApp number']);

const ofIssue = routes.filter(
  (route: Route): route is JsonRoute => route.kind === 'json' && tags.has(route.tag),
);

const nameOf = ({ method, path }: Pick<JsonRoute, 'method' | 'path'>) => `${method} ${path}`;

test('every field of every account route has its bounds here', (t) => {
  const fields = (route: JsonRoute) => Object.keys(route.body?.describe().keys ?? {}).toSorted();
  t.deepEqual(
    Object.fromEntries(
      ofIssue.filter(({ body }) => body).map((route) => [nameOf(route), fields(route)]),
    ),
    Object.fromEntries(
      Object.entries(accountBounds)
        .map(([name, bounds]) => [name, Object.keys(bounds.fields).toSorted()] as const)
        .toSorted(([a], [b]) => order(a) - order(b)),
    ),
  );
});

const order = (name: string) => ofIssue.findIndex((route) => nameOf(route) === name);

const clientOf = (as: RouteBounds['as'], customer: Customer): Client => {
  if (as === 'mfa') return createClient(stack.url, 'mfa_nonsense');
  return as === 'anybody' ? stack.anybody : customer[as];
};

let address = 0;

/** One call with `value` in `field`, from an address of its own. */
const callWith = async (
  name: string,
  { bounds, field, value }: { bounds: RouteBounds; field: string; value: unknown },
  customer: Customer,
): Promise<Answer> => {
  const [method = '', path = ''] = name.split(' ');
  const { business } = bounds;
  const asked = business ? await businessWith(business, field, value) : {};
  const body = { ...bounds.base(customer), ...asked, [field]: value };
  address += 1;
  const from = `2001:db8:${(address % 65_536).toString(16)}:${Math.floor(address / 65_536).toString(16)}::1`;
  const headers = { 'X-Forwarded-For': from };
  return clientOf(bounds.as, customer).call(method, path, { body, headers });
};

const made = new Set(['phone_number_id', 'waba_id', 'access_token']);

/** The other fields of a call about a business, which has the tried value itself where a business can have it. */
const businessWith = async (
  shows: 'access_token' | 'code',
  field: string,
  value: unknown,
): Promise<Record<string, unknown>> => {
  const can = made.has(field) && typeof value === 'string' && /^[\dt]+$/.test(value);
  const business = await aBusiness(stack, can ? { [field]: value } : {});
  const { waba_id, phone_number_id, access_token } = business;
  const secret = shows === 'code' ? { code: await aCode(stack, business) } : { access_token };
  return { waba_id, phone_number_id, ...secret };
};

type Detail = { field: string; issue: string };

const issueWith = ({ error }: Answer, field: string): string | undefined =>
  (error.details as Detail[] | undefined)?.find((detail) => detail.field === field)?.issue;

const shown = (value: unknown): string => String(JSON.stringify(value)).slice(0, 40);

const isTaken = (t: ExecutionContext, answer: Answer, field: string, later?: RegExp) => {
  t.true(answer.status < 500, answer.text);
  t.not(answer.status, 429, answer.text);
  if (later) t.regex(issueWith(answer, field) ?? '', later);
  else t.not(answer.error.code, 'VALIDATION_ERROR', answer.text);
};

const holds = async (
  t: ExecutionContext,
  name: string,
  { bounds, field, about }: { bounds: RouteBounds; field: string; about: FieldBounds },
) => {
  const customer = await stack.customer({ money: 0 });
  for (const value of about.bad) {
    const answer = await callWith(name, { bounds, field, value }, customer);
    t.is(answer.error.code, 'VALIDATION_ERROR', `${field} ${shown(value)}: ${answer.text}`);
    t.truthy(issueWith(answer, field), `${field} ${shown(value)}: ${answer.text}`);
  }
  for (const value of about.good) {
    const answer = await callWith(name, { bounds, field, value }, customer);
    isTaken(t, answer, field, about.later);
  }
};

for (const [name, bounds] of Object.entries(accountBounds)) {
  test.serial(`${name}: each field at its bounds, and no other field`, async (t) => {
    for (const [field, about] of Object.entries(bounds.fields)) {
      await holds(t, name, { bounds, field, about });
    }
    const customer = await stack.customer({ money: 0 });
    const unknown = { bounds, field: 'unknown_field', value: 1 };
    const answer = await callWith(name, unknown, customer);
    t.is(issueWith(answer, 'unknown_field'), 'is not allowed', answer.text);
  });
}

test.serial('exactly one of password and code: none and both are refused', async (t) => {
  const { session } = await stack.customer({ money: 0 });
  for (const path of ['reauth', 'mfa/disable', 'mfa/recovery']) {
    for (const body of [{}, { password: 'x', code: '123456' }]) {
      const answer = await session.post(`/v1/clients/security/${path}`, body);
      t.is(answer.error.code, 'VALIDATION_ERROR');
      t.truthy(issueWith(answer, 'body'));
    }
  }
});

test.serial('at least one field: an empty change is refused', async (t) => {
  const { session } = await stack.customer({ money: 0 });
  for (const what of ['profile', 'settings']) {
    const answer = await session.call('PATCH', `/v1/clients/${what}`, { body: {} });
    t.truthy(issueWith(answer, 'body'), answer.text);
  }
});

test.serial('ids in paths: one written form, and nothing else', async (t) => {
  const { session } = await stack.customer({ money: 0 });
  const uuid = '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';
  // The contract names the form of a key's id alone.
  for (const [path, code] of [
    ['/v1/clients/keys', 'VALIDATION_ERROR'],
    ['/v1/clients/security/sessions', 'NOT_FOUND'],
    ['/v1/clients/capacity-requests', 'NOT_FOUND'],
  ] as const) {
    for (const bad of [uuid.slice(1), `${uuid}0`, uuid.replaceAll('-', ''), 'nonsense']) {
      const answer = await session.call('DELETE', `${path}/${bad}`);
      t.is(answer.error.code, code, answer.text);
    }
    for (const good of [uuid, uuid.toUpperCase()]) {
      t.is((await session.call('DELETE', `${path}/${good}`)).error.code, 'NOT_FOUND');
    }
  }
});
