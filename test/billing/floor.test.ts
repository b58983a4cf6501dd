// The safety floor: three low days in a row, one good day back, and every switch written down once.
import test from 'ava';
import { daysToJudge, judgeDay, judgePastDays, judgeWhenHeard } from '../../lib/billing/floor.ts';
import { newsAbout } from '../../lib/billing/news.ts';
import { billingCharge } from '../../lib/jobs.ts';
import { day, minute } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, newId } from '../../lib/kernel/ids.ts';
import { tellLeftNews } from '../../lib/messages/news.ts';
import type { Plan } from '../../lib/messages/rules.ts';
import { listenForEvents } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { SAFETY_FLOOR_MINIMUM_DAILY: '10' };
  stack = await startStack('floor', { clock, settings, workers: [] });
});
test.after.always(() => stack?.close());

test('54 % is low, 55 % is good; few messages say nothing', (t) => {
  const before = { lowDays: 2, plan: 'pay_per_success' as const };
  t.deepEqual(judgeDay(before, { settled: 100, verified: 54 }, 20), {
    lowDays: 3,
    plan: 'per_message',
  });
  t.deepEqual(judgeDay(before, { settled: 100, verified: 55 }, 20), {
    lowDays: 0,
    plan: 'pay_per_success',
  });
  t.deepEqual(judgeDay(before, { settled: 19, verified: 0 }, 20), before);
  const held = { lowDays: 3, plan: 'per_message' as const };
  t.deepEqual(judgeDay(held, { settled: 100, verified: 10 }, 20), {
    lowDays: 4,
    plan: 'per_message',
  });
  t.deepEqual(judgeDay(held, { settled: 20, verified: 11 }, 20), {
    lowDays: 0,
    plan: 'pay_per_success',
  });
});

let made = 0;
/** So many messages of yesterday (or of so many days ago), the first few of them verified. */
const yesterday = async (
  { accountId }: Customer,
  settled: number,
  verified: number,
  daysAgo = 1,
) => {
  const at = Math.floor(clock.now() / day) * day - (daysAgo - 1) * day - 3 * 60 * minute;
  const rows = Array.from({ length: settled }, (_, index) => {
    made += 1;
    const id = `${idAt(at).slice(0, 14)}7000-8000-${String(made).padStart(12, '0')}`;
    return {
      ...{ id: idBytes(id), account_id: idBytes(accountId), mode: 'live', origin: 'send' },
      ...{ phone: '+14155550123', country: 'US', request_id: 'r', plan: 'pay_per_success' },
      ...{ price_micros: 0, status: index < verified ? 'verified' : 'expired', accepted_at: at },
      verified_at: index < verified ? at : null,
    };
  });
  await stack.api.db('messages').insert(rows);
};

const nextDay = () => clock.forward(day - (clock.now() % day) + 21 * minute);

const planOf = async ({ accountId }: Customer) =>
  (await stack.api.accounts.find(accountId))?.billingPlan;

test.serial(
  'three low days switch the plan, one good day switches it back, each told once',
  async (t) => {
    const customer = await stack.customer();
    await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
    const events = await listenForEvents(stack, 'billing.plan_changed');
    const days: [number, number, Plan][] = [
      [20, 5, 'pay_per_success'],
      [20, 10, 'pay_per_success'],
      [5, 0, 'pay_per_success'],
      [20, 0, 'per_message'],
      [20, 0, 'per_message'],
      [20, 11, 'pay_per_success'],
    ];
    for (const [settled, verified, expected] of days) {
      nextDay();
      await yesterday(customer, settled, verified);
      await Promise.all([judgePastDays(stack.worker), judgePastDays(stack.worker)]);
      await judgePastDays(stack.worker);
      t.is(await planOf(customer), expected, `${verified} of ${settled}`);
    }
    await eventually(t, () => (events.heard.length >= 2 ? true : undefined));
    t.deepEqual(
      events.heard.map(({ data }) => [data.from, data.to, data.reason]),
      [
        ['pay_per_success', 'per_message', 'safety_floor'],
        ['per_message', 'pay_per_success', 'safety_floor'],
      ],
    );
    await events.close();
  },
);

test.serial('before twenty past midnight nothing is judged', async (t) => {
  const customer = await stack.customer();
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  clock.forward(day - (clock.now() % day) + 19 * minute);
  await yesterday(customer, 20, 0);
  await judgePastDays(stack.worker);
  t.is((await stack.api.floor.recent(customer.accountId, 5)).length, 0);
  clock.forward(minute);
  await judgePastDays(stack.worker);
  t.like((await stack.api.floor.recent(customer.accountId, 5))[0], { settled: 20, lowDays: 1 });
});

test('the days to judge are those since the last round, a week back at most, after twenty past midnight', (t) => {
  const noon = Date.parse('2026-11-21T12:00:00Z');
  const dates = (now: number, last?: string) =>
    daysToJudge(now, last).map((at) => new Date(at).toISOString().slice(8, 10));
  t.deepEqual(dates(noon), ['20']);
  t.deepEqual(dates(noon, '2026-11-20'), []);
  t.deepEqual(dates(noon, '2026-11-17'), ['18', '19', '20']);
  t.deepEqual(dates(noon, '2026-10-01'), ['14', '15', '16', '17', '18', '19', '20']);
  t.deepEqual(dates(noon, '2026-11-23'), [], 'a clock that ran ahead');
  t.deepEqual(dates(Date.parse('2026-11-21T00:19:59Z'), '2026-11-17'), []);
});

test.serial('days over which nobody judged are made up for, each in its turn', async (t) => {
  const customer = await stack.customer();
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  nextDay();
  await judgePastDays(stack.worker);
  for (let n = 0; n < 3; n++) nextDay();
  for (const daysAgo of [1, 2, 3]) await yesterday(customer, 20, 0, daysAgo);
  await judgePastDays(stack.worker);
  t.is(await planOf(customer), 'per_message');
  const judged = await stack.api.floor.recent(customer.accountId, 5);
  t.deepEqual(
    judged.map(({ lowDays }) => lowDays),
    [3, 2, 1],
  );
});

test.serial('while verifications wait for their rows, no day is judged', async (t) => {
  const customer = await stack.customer();
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  nextDay();
  await yesterday(customer, 20, 0);
  const { broker } = stack.api;
  const judged = async () => (await stack.api.floor.recent(customer.accountId, 5)).length;
  const kept = newsAbout(customer.accountId, { name: 1, at: clock.now() }, 'webhook.test', {});
  // No billing worker runs here: it stays in the queue.
  await broker.publish(billingCharge, { events: [kept] }, { messageId: newId() });
  await judgeWhenHeard(stack.worker);
  t.is(await judged(), 0);
  await broker.look((channel) => channel.purgeQueue(billingCharge.name));
  await stack.api.news.keep({ ...kept, at: clock.now() - 2 * minute });
  await judgeWhenHeard(stack.worker);
  t.is(await judged(), 0);
  await tellLeftNews(stack.worker);
  await judgeWhenHeard(stack.worker);
  t.is(await judged(), 1);
});
