// Analytics as customers read them: against a recount of the messages, and within seconds of what happens.
import test from 'ava';
import { day, hour } from '../../lib/kernel/clock.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { insertMessages, type Made } from '../support/made-messages.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('analytics', { clock });
});
test.after.always(() => stack?.close());

test.serial('totals, funnel, series and channels come to what a recount comes to', async (t) => {
  const customer = await stack.customer();
  const all = (await insertMessages(stack, customer, 300, 6 * day)).filter(
    ({ mode }) => mode === 'live',
  );
  const get = async (path: string, period: number) =>
    (await customer.session.get(`/v1/clients/analytics${path}?period=${period}`)).data;
  const days = 5;
  const begin = (Math.floor(clock.now() / day) + 1 - days) * day;
  const inside = all.filter(({ at }) => at >= begin);
  const count = (some: Made[], is: (one: Made) => boolean) => some.filter(is).length;
  const expected = {
    requested: inside.length,
    accepted: count(inside, ({ channel }) => channel !== null),
    verified: count(inside, ({ status }) => status === 'verified'),
    failed: count(inside, ({ status }) => status === 'failed'),
    expired: count(inside, ({ status }) => status === 'expired'),
  };
  const { totals, previous } = (await get('', days)) as Record<string, Record<string, number>>;
  t.like(totals, expected);
  t.is(totals?.spend, Math.round(expected.verified * 0.05 * 1e6) / 1e6);
  t.is(previous?.requested, all.length - inside.length);

  const whole = await get('', days);
  const test = await customer.test.get('/v1/clients/otps?mode=test&limit=100');
  const testItems = (test.data.items as { created_at: string }[]).filter(
    (item) => Date.parse(item.created_at) >= begin,
  );
  t.like(whole.modes, [
    { mode: 'live', ...expected },
    { mode: 'test', requested: testItems.length },
  ]);
  t.like(whole.countries, [
    {
      country: 'US',
      ...expected,
      mean_delivery_ms: 1_000,
      delivery_ms: { p50: 1_000, p99: 1_000 },
    },
  ]);

  const series = await get('/timeseries', days);
  const points = series.points as { at: string; requested: number; verified: number }[];
  t.is(series.interval, 'day');
  t.is(points.length, days);
  t.is(
    points.reduce((sum, point) => sum + point.requested, 0),
    expected.requested,
  );
  const [first] = points;
  t.is(first?.at, new Date(begin).toISOString());
  t.is(
    first?.requested,
    count(inside, ({ at }) => at < begin + day),
  );
  const hours = (await get('/timeseries', 1)).points as { at: string }[];
  t.is(
    hours.length,
    Math.floor((clock.now() % day) / hour) + 1,
    'hours that have begun, none left out',
  );

  const { steps } = (await get('/funnel', days)) as { steps: { step: string; count: number }[] };
  t.deepEqual(
    steps.map(({ step }) => step),
    ['requested', 'accepted', 'delivered', 'verified'],
  );
  t.is(steps[0]?.count, expected.requested);
  t.is(steps[3]?.count, expected.verified);

  const { channels: list } = (await get('/channels', days)) as {
    channels: { channel: string; requested: number; mean_delivery_ms: number }[];
  };
  for (const name of ['whatsapp', 'telegram']) {
    const own = list.find(({ channel }) => channel === name);
    t.is(
      own?.requested,
      count(inside, ({ channel }) => channel === name),
    );
  }
  for (const period of ['0', '366', 'x', '1.5']) {
    for (const path of ['', '/timeseries', '/funnel', '/channels']) {
      const answer = await customer.live.get(`/v1/clients/analytics${path}?period=${period}`);
      t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field: 'period' }] });
    }
  }
});

test.serial('what just happened is counted within seconds', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone();
  await customer.live.send(phone.number);
  await customer.live.verify(phone.number, await phone.code());
  const counted = await eventually(t, async () => {
    clock.forward(1_000);
    const { data } = await customer.live.get('/v1/clients/analytics?period=1');
    return (data.totals as { verified: number }).verified === 1 ? data : undefined;
  });
  t.like(counted.totals, { requested: 1, accepted: 1, delivered: 1, conversion_rate: 1 });
  const hidden = { slot: Math.floor(clock.now() / 2_000) - 500, hour: 0 };
  await stack.worker.rollupStore.mark([{ ...hidden, accountId: customer.accountId }]);
  const { data } = await customer.live.get('/v1/clients/analytics?period=1');
  t.true(Date.parse(String(data.as_of)) <= clock.now());
});

test.serial('figures are as old as they are while nobody counts', async (t) => {
  const customer = await stack.customer();
  const asOf = async (): Promise<number> =>
    Date.parse(
      String((await customer.live.get('/v1/clients/analytics/funnel?period=1')).data.as_of),
    );
  await stack.stopWorkers('analytics');
  const stopped = clock.now();
  await customer.live.send(stack.phone().number);
  clock.forward(hour);
  t.true((await asOf()) <= stopped, 'an hour behind, though nothing is marked');
  await stack.startWorkers('analytics');
  await eventually(t, async () => {
    clock.forward(500);
    return (await asOf()) >= stopped + hour || undefined;
  });
  const { data } = await customer.live.get('/v1/clients/analytics?period=2');
  t.like(data.totals, { requested: 1 }, 'and what it says is so');
});

test.serial('an account without messages has zeros and no rates', async (t) => {
  const { live } = await stack.customer();
  const { totals } = (await live.get('/v1/clients/analytics')).data as { totals: object };
  t.like(totals, {
    requested: 0,
    verified: 0,
    spend: 0,
    delivery_rate: null,
    conversion_rate: null,
  });
});
