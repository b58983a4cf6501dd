// What customers read about their messages: filters against a brute-force model, cursors while rows arrive, steps, CSV.
import test from 'ava';
import { day, hour } from '../../lib/kernel/clock.ts';
import { toMessageId } from '../../lib/kernel/ids.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { insertMessages, type Made, statuses } from '../support/made-messages.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('reports', { clock });
});
test.after.always(() => stack?.close());

const walk = async (customer: Customer, query: string): Promise<string[]> => {
  const ids: string[] = [];
  let before = '';
  for (;;) {
    const { data, status, text } = await customer.session.get(`/v1/clients/otps?${query}${before}`);
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
  await insertMessages(stack, await stack.customer(), 20, day);
  const all = await insertMessages(stack, customer, 240, 3 * day);
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
    const first = await insertMessages(stack, customer, 9, hour);
    const page = (await customer.session.get('/v1/clients/otps?limit=5')).data;
    clock.forward(1_000);
    await insertMessages(stack, customer, 4, 1);
    const rest = await walk(customer, `limit=5&before=${page.next_before}`);
    const seen = [
      ...(page.items as { message_id: string }[]).map((item) => item.message_id),
      ...rest,
    ];
    t.deepEqual(
      seen,
      first.map(({ id }) => toMessageId(id)),
    );
    const cursor = String(page.next_before);
    const garbled = `${cursor.slice(0, 9)}${cursor[9] === 'A' ? 'B' : 'A'}${cursor.slice(10)}`;
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
      ['from=2026-02-30', 'from'],
      ['to=2026-11-20T24:00:00Z', 'to'],
      [`before=${garbled}`, 'before'],
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
    t.is(
      ((await customer.session.get('/v1/clients/otps/recent')).data.items as unknown[]).length,
      10,
    );
    t.is(
      ((await customer.session.get('/v1/clients/otps/recent?limit=50')).data.items as unknown[])
        .length,
      13,
    );
  },
);

test.serial('a message shows what became of it, and all of them export as CSV', async (t) => {
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
