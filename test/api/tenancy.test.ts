// Tenants never see one another: every id of one account, used with another's key and session, is not found, and
// nothing changes. A route with an id in its path must say here how such an id comes about.
import test from 'ava';
import type { JsonRoute } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('tenancy');
});
test.after.always(() => stack?.close());

type Thing = {
  /** Makes one for its owner and answers its id. */
  make(owner: Customer): Promise<string>;
  /** What the owner sees of it: the same before and after a stranger's call. */
  look(owner: Customer, id: string): Promise<unknown>;
};

const inList = async (owner: Customer, path: string, id: string): Promise<unknown> => {
  const { items } = (await owner.session.get(path)).data as { items: { id: string }[] };
  const item = items.find((candidate) => candidate.id === id);
  // Looking is using.
  return item && { ...item, last_used_at: null };
};

const message: Thing = {
  make: async (owner) => String((await owner.live.send(stack.phone().number)).data.message_id),
  look: async (owner, id) => (await owner.live.get(`/v1/otp/status/${id}`)).data.message_id,
};

const key: Thing = {
  make: async ({ liveKeyId }) => liveKeyId,
  look: (owner, id) => inList(owner, '/v1/clients/keys', id),
};

const session: Thing = {
  make: async (owner) => {
    const { data } = await owner.session.get('/v1/clients/security/sessions');
    return (data.items as { id: string }[])[0]?.id ?? '';
  },
  look: (owner, id) => inList(owner, '/v1/clients/security/sessions', id),
};

const capacity: Thing = {
  make: async (owner) => {
    const { data } = await owner.session.post('/v1/clients/capacity-requests', {
      ...{ requested_sustained_per_minute: 1_000, requested_burst_per_10_seconds: 300 },
      ...{ expected_sustained_per_minute: 500, expected_peak_per_minute: 900 },
      business_justification: 'A launch in three countries.',
    });
    return (data.capacity_request as { id: string }).id;
  },
  look: (owner, id) => inList(owner, '/v1/clients/capacity-requests', id),
};

const delivery: Thing = {
  make: async (owner) => {
    const { accountId } = owner;
    const mode = 'live' as const;
    const rendered = { eventId: newId().replaceAll('-', ''), type: 'webhook.test', body: '{}' };
    const place = { kind: 'waiting' as const };
    await stack.api.webhooks.add(
      [{ ...rendered, id: newId(), accountId, mode, place }],
      Date.now(),
    );
    const { data } = await owner.session.get('/v1/clients/webhooks/deliveries');
    return (data.items as { id: string }[])[0]?.id ?? '';
  },
  look: (owner, id) => inList(owner, '/v1/clients/webhooks/deliveries', id),
};

/** By the beginning of the path. */
const things: Record<string, Thing> = {
  '/v1/otp/status/': message,
  '/v1/clients/otps/': message,
  '/v1/clients/capacity-requests/': capacity,
  '/v1/clients/webhooks/deliveries/': delivery,
  '/v1/clients/keys/': key,
  '/v1/clients/security/sessions/': session,
};

const withId = routes.filter(
  (route): route is JsonRoute => route.kind === 'json' && route.params !== undefined,
);

for (const route of withId) {
  const where = `${route.method} ${route.path}`;
  test(`${where}: another account's id is not found`, async (t) => {
    const [, thing] = Object.entries(things).find(([start]) => route.path.startsWith(start)) ?? [];
    if (!thing) return t.fail('say in `things` how an id of this path comes about');
    const [owner, stranger] = [await stack.customer(), await stack.customer()];
    const id = await thing.make(owner);
    const before = await thing.look(owner, id);
    t.truthy(before);
    const clients = [stranger.live, stranger.test, stranger.session];
    for (const client of clients) {
      const path = route.path.replace(/\{\w+\}/, id);
      const answer = await client.call(route.method, path, route.body ? { body: {} } : {});
      // A credential of another kind is refused before, a test key may not even ask.
      t.true([401, 403, 404].includes(answer.status), answer.text);
    }
    const proper = route.auth === 'session' ? stranger.session : stranger.live;
    const answer = await proper.call(route.method, route.path.replace(/\{\w+\}/, id), {});
    t.is(answer.status, 404);
    t.deepEqual(await thing.look(owner, id), before);
  });
}
