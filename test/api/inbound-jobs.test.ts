// Whatever a provider says becomes jobs that their workers take: nothing foreign can spoil what is ours.
import test from 'ava';
import fc from 'fast-check';
import { statusJobs, updateJob } from '../../api/inbound-jobs.ts';
import { readUpdate } from '../../lib/channels/telegram-webhook.ts';
import { telegramUpdate, whatsappStatus } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { misfitOf } from '../support/checked-broker.ts';

const zeros = '0'.repeat(32);
const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

const callOf = (...statuses: unknown[]) => ({
  entry: [{ id: '1', changes: [{ field: 'messages', value: { statuses } }] }],
});

const delivered = (echo: unknown) => ({
  ...{ status: 'delivered', timestamp: '1700000000' },
  biz_opaque_callback_data: echo,
});

test('echoes of others are passed over, ours in the same call are not', (t) => {
  const id = newId();
  const foreign = [
    `${'-'.repeat(36)}.${zeros}`,
    `${'0'.repeat(36)}.${zeros}`,
    `${id.toUpperCase()}.${zeros}`,
    // Another version of id; a 7 may stand behind other dashes, too.
    `${id.slice(0, 14)}4${id.slice(15)}.${zeros}`,
    `${id}.${zeros}\n`,
    `${id}${zeros}`,
    7,
    null,
  ];
  const jobs = statusJobs(body(callOf(...foreign.map(delivered), delivered(`${id}.${zeros}`))), 1);
  t.is(jobs.length, 1);
  t.deepEqual(
    jobs[0]?.receipts.map((receipt) => receipt.message_id),
    [id],
  );
});

const near = (...values: unknown[]) => fc.oneof(fc.constantFrom(...values), fc.jsonValue());
const hex = (length: number) =>
  fc.string({
    unit: fc.constantFrom(...'0123456789abcdef-'),
    minLength: length,
    maxLength: length,
  });

const aReceipt = fc.record({
  status: near('sent', 'delivered', 'read', 'failed'),
  timestamp: near('1700000000', 1, '0', '1e9', '99999999999', '-1'),
  biz_opaque_callback_data: fc.oneof(
    near(`${newId()}.${zeros}`),
    fc.tuple(hex(36), hex(32)).map((parts) => parts.join('.')),
  ),
  errors: near([{ code: 131026 }], [{ code: 1.5 }], [{ code: -0 }]),
});

const news = fc.record({
  field: near('message_template_status_update', 'phone_number_quality_update', 'account_update'),
  value: fc.record({
    event: near('APPROVED', ''),
    waba_info: near({ waba_id: '' }, { waba_id: '7' }),
    message_template_name: near('otp', ''),
    message_template_language: near('en', ''),
    ban_info: near({ waba_ban_state: '' }, { waba_ban_state: 'DISABLE' }),
  }),
});

test('every job of a call of WhatsApp fits its schema', (t) => {
  const call = fc.record({
    entry: fc.array(
      fc.record({
        id: near('1', ''),
        time: near(1_700_000_000, -1, 0.5),
        changes: fc.oneof(
          fc.array(news),
          fc.array(aReceipt).map((statuses) => [{ field: 'messages', value: { statuses } }]),
        ),
      }),
      { maxLength: 3 },
    ),
  });
  fc.assert(
    fc.property(fc.oneof(call, fc.jsonValue()), (value) =>
      statusJobs(body(value), 1).every((job) => misfitOf(whatsappStatus, job) === undefined),
    ),
    { numRuns: 500 },
  );
  t.pass();
});

test('every job of an update of Telegram fits its schema', (t) => {
  const who = fc.record({
    id: near(7, -7, 2 ** 53),
    type: near('private'),
    is_bot: near(false),
    language_code: near('', 'en', 'x'.repeat(99)),
  });
  const message = fc.record({
    ...{ from: who, chat: who },
    text: near('/start', '/start abc', ''),
    contact: near({ phone_number: '' }, { phone_number: '1', user_id: 7 }, { user_id: 0.5 }),
  });
  const membership = fc.record({
    ...{ from: who, chat: who },
    new_chat_member: near({ status: 'kicked' }, {}),
  });
  const update = fc.oneof(
    fc.record({ update_id: near(1), message }),
    fc.record({ update_id: near(1), my_chat_member: membership }),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(update, (value) => {
      const read = readUpdate(body(value));
      return read === undefined || misfitOf(telegramUpdate, updateJob(read)) === undefined;
    }),
    { numRuns: 500 },
  );
  t.pass();
});
