// What customers read about their messages: filters against a brute-force model, cursors while rows arrive, analytics.
import test from 'ava';
import { day, hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, toMessageId } from '../../lib/kernel/ids.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('reports', { clock });
});
test.after.always(() => stack?.close());

let made = 0;
const idOf = (at: number): string => {
  made += 1;
  return `${idAt(at).slice(0, 14)}7000-8000-${String(made).padStart(12, '0')}`;
};

type Made = { id: string; at: number; status: string; channel: string | null; mode: string };

const statuses = ['sent', 'verified', 'failed', 'expired'] as const;
const channels = ['whatsapp', 'telegram', null] as const;

/** Messages spread over the last days, one of every kind after the other. */
const insert = async (
  { accountId }: Customer,
  count: number,
  spreadMs: number,
): Promise<Made[]> => {
  const now = clock.now();
  const all = Array.from({ length: count }, (_, index): Made => {
    const at = Math.floor(now - ((index * 7919) % count) * (spreadMs / count));
    return {
      ...{ id: idOf(at), at, status: statuses[index % 4] ?? 'sent' },
      ...{ channel: channels[index % 3] ?? null, mode: index % 5 === 0 ? 'test' : 'live' },
    };
  });
  await stack.api.db.batchInsert(
    'messages',
    all.map(({ id, at, status, channel, mode }) => ({
      ...{ id: idBytes(id), account_id: idBytes(accountId), mode, origin: 'send', status, channel },
      ...{ phone: '+14155550123', country: 'US', request_id: 'r', plan: 'pay_per_success' },
      ...{ price_micros: 50_000, accepted_at: channel ? at + 10 : null },
      delivered_at: channel && status !== 'failed' ? at + 1_010 : null,
      verified_at: status === 'verified' ? at + 20_010 : null,
      failure_reason: status === 'failed' ? 'not_on_channel' : null,
    })),
    200,
  );
  return all.toSorted((one, other) => (one.id < other.id ? 1 : -1));
};

const walk = async (customer: Customer, query: string): Promise<string[]> => {
  const ids: string[] = [];
  let before = '';
  for (;;) {
    const { data, status, text } = await customer.live.get(`/v1/clients/otps?${query}${before}`);
    if (status !== 200) throw new Error(text);
    ids.push(...(data.items as { message_id: string }[]).map(({ message_id: id }) => id));
    if (data.next_before === null) return ids;
    before = `&before=${data.next_before}`;
  }
};

type Filter = {
  status: string | undefined;
  channel: string | undefined;
  mode: string | undefined;
  from: number | undefined;
  to: number | undefined;
};

const combinations = (spans: [number | undefined, number | undefined][]): Filter[] =>
  [undefined, ...statuses].flatMap((status) =>
    [undefined, 'whatsapp', 'telegram'].flatMap((channel) =>
      [undefined, 'live', 'test'].flatMap((mode) =>
        spans.map(([from, to]) => ({ status, channel, mode, from, to })),
      ),
    ),
  );

/** The model: what a filter means, said plainly. */
const fits = (one: Made, { status, channel, mode, from, to }: Filter): boolean =>
  [undefined, one.status].includes(status) &&
  (channel === undefined || channel === one.channel) &&
  [undefined, one.mode].includes(mode) &&
  one.at >= (from ?? 0) &&
  one.at < (to ?? Number.MAX_SAFE_INTEGER);

test.serial('every combination of filters lists what a model lists, page by page', async (t) => {
  const customer = await stack.customer();
  await insert(await stack.customer(), 20, day);
  const all = await insert(customer, 240, 3 * day);
  const now = clock.now();
  const spans: [number | undefined, number | undefined][] = [
    [undefined, undefined],
    [now - 2 * day, now - day],
  ];
  for (const filter of combinations(spans)) {
    const expected = all.filter((one) => fits(one, filter));
    const query = new URLSearchParams({ limit: '100' });
    for (const [name, value] of Object.entries(filter)) {
      if (value !== undefined) {
        query.set(name, typeof value === 'number' ? new Date(value).toISOString() : value);
      }
    }
    const ids = await walk(customer, query.toString());
    t.deepEqual(
      ids,
      expected.map(({ id }) => toMessageId(id)),
      query.toString(),
    );
    // The reads of one account are limited, and this test is one account.
    await stack.api.redis.del(`${stack.config.keyPrefix}read:r:${customer.accountId}`);
  }
});

test.serial(
  'a walk sees each row once while others arrive, and bad queries name their field',
  async (t) => {
    const customer = await stack.customer();
    const first = await insert(customer, 9, hour);
    const page = (await customer.live.get('/v1/clients/otps?limit=5')).data;
    clock.forward(1_000);
    await insert(customer, 4, 1);
    const rest = await walk(customer, `limit=5&before=${page.next_before}`);
    const seen = [
      ...(page.items as { message_id: string }[]).map((item) => item.message_id),
      ...rest,
    ];
    t.deepEqual(
      seen,
      first.map(({ id }) => toMessageId(id)),
    );
    const wrong: [string, string][] = [
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['limit=1.5', 'limit'],
      ['before=nonsense', 'before'],
      ['status=delivered', 'status'],
      ['channel=sms', 'channel'],
      ['mode=both', 'mode'],
      ['from=yesterday', 'from'],
      ['from=2026-13-01', 'from'],
      ['to=2026-11-20T12:00:00', 'to'],
      ['page=2', 'page'],
    ];
    for (const [query, field] of wrong) {
      const answer = await customer.live.get(`/v1/clients/otps?${query}`);
      t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field }] }, query);
    }
    for (const query of [
      'limit=1',
      'limit=100',
      'from=2026-01-01',
      'to=2026-01-01T00:00:00%2B02:00',
    ]) {
      t.is((await customer.live.get(`/v1/clients/otps?${query}`)).status, 200, query);
    }
    for (const limit of [0, 51]) {
      const answer = await customer.live.get(`/v1/clients/otps/recent?limit=${limit}`);
      t.is(answer.error.code, 'VALIDATION_ERROR');
    }
    t.is(((await customer.live.get('/v1/clients/otps/recent')).data.items as unknown[]).length, 10);
    t.is(
      ((await customer.live.get('/v1/clients/otps/recent?limit=50')).data.items as unknown[])
        .length,
      13,
    );
  },
);

test.serial('lists are read by an index alone', async (t) => {
  const explain = async (where: string) => {
    const sql = `EXPLAIN SELECT * FROM messages WHERE account_id = ? ${where} ORDER BY id DESC LIMIT 51`;
    const [rows] = await stack.api.db.raw(sql, [Buffer.alloc(16, 1)]);
    return rows[0] as { type: string; Extra: string; key: string };
  };
  for (const where of [
    '',
    "AND status = 'failed'",
    "AND mode = 'live'",
    "AND channel = 'telegram'",
  ]) {
    const { type, Extra, key } = await explain(where);
    t.truthy(key, where);
    t.not(type, 'ALL');
    t.notRegex(String(Extra), /filesort|temporary/);
  }
});

test.serial('totals, funnel, series and channels come to what a recount comes to', async (t) => {
  const customer = await stack.customer();
  const all = (await insert(customer, 300, 6 * day)).filter(({ mode }) => mode === 'live');
  const get = async (path: string, period: number) =>
    (await customer.live.get(`/v1/clients/analytics${path}?period=${period}`)).data;
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

test.serial('a message shows every step it took, and all of them export as CSV', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  await customer.live.verify(phone.number, await phone.code());
  const path = `/v1/clients/otps/${sent.data.message_id}/timeline`;
  const steps = await eventually(t, async () => {
    const { data } = await customer.session.get(path);
    const types = (data.steps as { type: string }[]).map(({ type }) => type);
    return types.includes('otp.verified') && types.includes('otp.delivered') ? types : undefined;
  });
  t.is(steps[0], 'otp.requested');
  t.true(steps.includes('otp.sent'));
  const { message } = (await customer.live.get(path)).data as { message: object };
  t.like(message, { status: 'verified', channel: 'whatsapp', phone: phone.number });
  t.is((await customer.live.get('/v1/clients/otps/otp_x/timeline')).status, 404);
  const file = await customer.live.get('/v1/clients/otps/export?status=verified');
  t.regex(file.headers.get('content-disposition') ?? '', /messages\.csv/);
  const [head, row] = file.text.trim().split('\r\n');
  t.true(head?.startsWith('message_id,created_at,phone'));
  t.true(row?.startsWith(`${sent.data.message_id},`));
  t.true(row?.includes(phone.number));
});
