// The channels: what operators see of each, and what a pause does to sends on every process.
import test, { type ExecutionContext } from 'ava';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import type { ChannelName } from '../../lib/messages/rules.ts';
import { foldTallies } from '../../lib/sender/tally-rules.ts';
import { aBusiness, connect, detailsOf } from '../support/connections.ts';
import { linkTelegram } from '../support/control.ts';
import { addAccounts } from '../support/full-house.ts';
import { andHeard } from '../support/heard.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;
let customer: Customer;

test.before(async () => {
  stack = await startStack('opschannels', { settings: { REACHABILITY_WINDOW_MS: '0' } });
  ops = await startOps(stack);
  customer = await stack.customer();
});

test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

const channelOf = async (kind: string) =>
  (await ops.get('/ops/api/channels')).data?.items.find(
    (one: { kind: string }) => one.kind === kind,
  );

/** Runs `work` while a channel is paused, and resumes it whatever happens. */
const whilePaused = async (
  t: ExecutionContext,
  body: { channel: ChannelName; number?: string; note?: string },
  work: () => Promise<void>,
): Promise<void> => {
  const set = (what: 'pause' | 'resume', expected: boolean) =>
    andHeard(
      ...([t, stack, () => ops.post(`/ops/api/channels/${what}`, body)] as const),
      ({ pauses }) => pauses.isPaused(body.channel, body.number) === expected,
    );
  const paused = await set('pause', true);
  if (paused.status !== 200) throw new Error(paused.text);
  const shown = (await ops.get('/ops/api/channels')).data.items;
  if (!('number' in body) && !shown.some(({ status }: { status: string }) => status === 'paused')) {
    throw new Error('the pause is not shown at once');
  }
  try {
    await work();
  } finally {
    await set('resume', false);
  }
};

test.serial('calls are counted by outcome, class and latency', async (t) => {
  for (let n = 0; n < 3; n++) t.is((await customer.live.send(stack.phone().number)).status, 200);
  const bad = stack.phone();
  await bad.behave({ whatsapp: 'template_not_approved' });
  t.not((await customer.live.send(bad.number)).status, 200);
  const shared = await eventually(t, async () => {
    const one = await channelOf('shared');
    return one?.last_hour?.calls >= 4 ? one : undefined;
  });
  t.like(shared, { channel: 'whatsapp', status: 'ok', id: stack.config.whatsappPhoneNumberId });
  t.like(shared.last_hour, { calls: 4, accepted: 3, refused: 1, unknown: 0, success_rate: 0.75 });
  t.is(shared.last_hour.errors[0].class, 'template');
  t.true(shared.last_hour.p95_ms >= shared.last_hour.p50_ms);
  t.is(shared.last_hour.minutes.length, 60);
  t.like(await channelOf('bot'), { channel: 'telegram', status: 'ok' });
});

test.serial(
  'WhatsApp paused: nothing goes out, callers hear CENTRAL_WHATSAPP_PAUSED or get the fallback',
  async (t) => {
    const linked = stack.phone();
    await linkTelegram(customer, linked);
    await whilePaused(t, { channel: 'whatsapp', note: 'incident 7' }, async () => {
      const phone = stack.phone();
      const refused = await customer.live.send(phone.number);
      t.is(refused.error.code, 'CENTRAL_WHATSAPP_PAUSED', refused.text);
      t.is(refused.status, 503);
      t.truthy(refused.headers.get('retry-after'));
      t.deepEqual(await phone.messages(), []);
      t.is((await customer.live.send(linked.number)).status, 200);
      t.is((await linked.messages())[0]?.channel, 'telegram');
      t.is((await customer.test.send('+14155550111')).status, 200);
      t.is((await channelOf('shared')).status, 'paused');
      const health = await stack.anybody.get('/health/channels');
      t.like(health.data.whatsapp, { status: 'paused' });
      t.like(health.data.telegram, { status: 'ok' });
    });
    t.is((await customer.live.send(stack.phone().number)).status, 200);
    const log = (await ops.get('/ops/api/audit?subject=whatsapp')).data.items;
    t.deepEqual(
      log.map(({ action }: { action: string }) => action),
      ['channel.resume', 'channel.pause'],
    );
    t.like(log[1], { actor: 'Tester', status: 'done', detail: { note: 'incident 7' } });
  },
);

test.serial('one number can be paused by itself', async (t) => {
  const number = stack.config.whatsappPhoneNumberId;
  await whilePaused(t, { channel: 'whatsapp', number: '99999999999' }, async () => {
    t.is((await customer.live.send(stack.phone().number)).status, 200);
  });
  await whilePaused(t, { channel: 'whatsapp', number }, async () => {
    t.is((await customer.live.send(stack.phone().number)).error.code, 'CENTRAL_WHATSAPP_PAUSED');
  });
  t.is((await ops.post('/ops/api/channels/pause', { channel: 'telegram', number })).status, 400);
});

test.serial(
  'an own number paused: nothing goes out and nothing is taken; callers hear when to come again, or get the fallback',
  async (t) => {
    const owner = await stack.customer();
    const business = await aBusiness(stack);
    t.is((await connect(owner.session, business)).status, 200);
    await owner.live.post('/v1/clients/waba/template/create', {});
    await eventually(t, async () => {
      const told = await detailsOf(owner);
      return told?.template.status === 'approved' ? true : undefined;
    });
    const linked = stack.phone();
    await linkTelegram(owner, linked);
    await whilePaused(t, { channel: 'whatsapp', number: business.phone_number_id }, async () => {
      const phone = stack.phone();
      const key = { 'Idempotency-Key': 'own-paused' };
      const refused = await owner.live.send(phone.number, key);
      t.is(refused.status, 503, refused.text);
      t.is(refused.error.code, 'SERVICE_UNAVAILABLE');
      t.true(Number(refused.headers.get('retry-after')) >= 1);
      t.deepEqual(await phone.messages(), []);
      // Nothing was taken: neither the cooldown of the recipient nor the key stand in the way.
      t.is((await owner.live.send(phone.number, key)).error.code, 'SERVICE_UNAVAILABLE');
      t.is((await owner.live.send(linked.number)).status, 200);
      t.is((await linked.messages())[0]?.channel, 'telegram');
      t.is((await customer.live.send(stack.phone().number)).status, 200);
      const { items } = await eventually(t, async () => {
        const { data } = await owner.live.get('/v1/clients/otps?status=failed');
        return (data.items as unknown[]).length > 0 ? data : undefined;
      });
      t.like((items as object[])[0], { failure_reason: 'connection_paused' });
    });
    t.is((await owner.live.send(stack.phone().number)).status, 200);
  },
);

test.serial('pausing what is paused does not make the pause younger', async (t) => {
  const body = { channel: 'telegram' };
  await ops.post('/ops/api/channels/pause', body);
  const { since } = await channelOf('bot');
  await new Promise((done) => setTimeout(done, 20));
  await ops.post('/ops/api/channels/pause', body);
  t.is((await channelOf('bot')).since, since);
  await ops.post('/ops/api/channels/resume', body);
  await ops.post('/ops/api/channels/pause', body);
  t.true((await channelOf('bot')).since > since);
  await ops.post('/ops/api/channels/resume', body);
});

test.serial(
  'Telegram paused: who waits for the fallback hears TELEGRAM_UNAVAILABLE, and nothing goes out',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    const before = (await phone.messages()).length;
    await phone.behave({ whatsapp: 'unreachable_sync' });
    await whilePaused(t, { channel: 'telegram' }, async () => {
      const refused = await customer.live.send(phone.number);
      t.is(refused.error.code, 'TELEGRAM_UNAVAILABLE', refused.text);
      t.is((await phone.messages()).length, before);
      t.like((await stack.anybody.get('/health/channels')).data.telegram, { status: 'paused' });
    });
  },
);

test.serial(
  'hundreds of connected numbers come in parts; those in trouble are always in sight',
  async (t) => {
    const owner = await stack.customer();
    await connect(owner.session, await aBusiness(stack));
    const { db } = stack.api;
    const [like] = await db('whatsapp_connections').where({ account_id: idBytes(owner.accountId) });
    await addAccounts(stack, owner.accountId, 230);
    const others = await db('accounts')
      .where('company', 'like', '%')
      .orWhere('name', 'like', '% 2%');
    const free = others.filter(({ id }) => !id.equals(like.account_id)).slice(0, 115);
    const numberAt = (n: number): string => `77700000${String(n).padStart(4, '0')}`;
    await db.batchInsert(
      'whatsapp_connections',
      free.map(({ id }, n) => ({
        ...{ ...like, id: idBytes(newId()), account_id: id, phone_number_id: numberAt(n) },
        // Several of one moment, and the oldest of all is broken.
        ...{ connected_at: 1_000 + Math.floor(n / 10), status: n === 0 ? 'broken' : 'connected' },
        ...{ broken_at: n === 0 ? 5_000 : null, broken_reason: n === 0 ? 'token' : null },
      })),
      100,
    );
    const failing = numberAt(3);
    stack.worker.tally.note(failing, { kind: 'unknown', detail: 'timeout' }, 10);
    const idsOf = (items: { id: string; kind: string }[]): string[] =>
      items.filter(({ kind }) => kind === 'own').map(({ id }) => id);
    await eventually(t, async () => {
      const watched = idsOf((await ops.get('/ops/api/channels/watched')).data.items);
      return watched.includes(failing) && watched.length < 10 && watched[0] === numberAt(0)
        ? true
        : undefined;
    });
    const seen: string[] = [];
    for (let before = ''; ; ) {
      const { data } = await ops.get(`/ops/api/channels?limit=40${before && `&before=${before}`}`);
      seen.push(...idsOf(data.items));
      if (data.next_before === null) break;
      before = data.next_before;
    }
    const numbers = await db('whatsapp_connections').select('phone_number_id');
    const every = numbers.map((row: { phone_number_id: string }) => String(row.phone_number_id));
    t.deepEqual([...new Set(seen)].sort(), every.sort());
    t.true(every.length > 100);
    t.is(seen[0], numberAt(0));
    t.true(seen.indexOf(failing) < 10);
    const own = (await ops.get(`/ops/api/channels?account=${owner.accountId}`)).data;
    t.deepEqual(idsOf(own.items), [String(like.phone_number_id)]);
  },
);

test('classes of latency become quantiles, refusals become classes of errors', (t) => {
  const view = foldTallies([
    {
      at: 0,
      fields: [
        ['accepted', 8],
        ['refused:throttle:130429', 1],
        ['b:50', 8],
        ['b:100', 1],
        ['ms', 400],
      ],
    },
    {
      at: 60_000,
      fields: [
        ['unknown', 1],
        ['b:more', 1],
        ['ms', 9_600],
      ],
    },
  ]);
  t.like(view, { calls: 10, accepted: 8, refused: 1, unknown: 1, successRate: 0.8, meanMs: 1_000 });
  t.like(view, { p50Ms: 50, p95Ms: 10_000 });
  t.deepEqual(view.errors, [{ class: 'throttle', code: 130429, count: 1 }]);
  t.deepEqual(view.minutes, [
    { at: 0, calls: 9, failed: 1, troubled: 1 },
    { at: 60_000, calls: 1, failed: 1, troubled: 1 },
  ]);
  t.like(foldTallies([]), { calls: 0, successRate: null, p50Ms: null });
});
