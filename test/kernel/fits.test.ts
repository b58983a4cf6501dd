// The quick check of queue messages: it takes what our processes send, and never anything that Joi would refuse.
import test from 'ava';
import fc from 'fast-check';
import { jobs, webhookDispatch, whatsappStatus } from '../../lib/jobs.ts';
import { compileFits } from '../../lib/kernel/fits.ts';
import { newId } from '../../lib/kernel/ids.ts';
import {
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  record,
  text,
} from '../../lib/kernel/schema.ts';
import { messageEvent } from '../../lib/messages/events.ts';

const event = () =>
  messageEvent(
    'otp.sent',
    {
      ...{ id: newId(), accountId: newId(), mode: 'live', origin: 'send', phone: '+14155550100' },
      ...{ country: 'US', requestId: newId(), plan: 'per_message', priceMicros: 50_000 },
      idempotencyHash: null,
    },
    Date.now(),
    { channel: 'whatsapp' },
  );

test('the messages of our own processes pass it', (t) => {
  const events = { events: [event(), event()] };
  t.true(compileFits(webhookDispatch.payload)(JSON.parse(JSON.stringify(events))));
  t.true(compileFits(whatsappStatus.payload)({ receipts: [], due: [newId()] }));
});

const values = fc.oneof(
  fc.constantFrom(
    null,
    undefined,
    '',
    'live',
    'test',
    'ab12',
    'AB',
    '   ',
    0,
    -1,
    1.5,
    2 ** 60,
    NaN,
    true,
  ),
  fc.string(),
  fc.integer(),
  fc.array(fc.integer(), { maxLength: 3 }),
  fc.dictionary(fc.string(), fc.integer()),
);

const schema = object({
  ...{
    id: text().guid(),
    hash: nullable(text().hex()),
    code: text().length(2),
    name: text().max(5),
  },
  ...{ mode: oneOf('live', 'test'), count: integer().min(0), on: flag(), more: record() },
  ...{ items: list(integer()).min(1), note: optional(text()) },
});
const sound = {
  ...{ id: newId(), hash: null, code: 'US', name: 'abc', mode: 'live', count: 3, on: false },
  ...{ more: { a: 1 }, items: [1, 2] },
};

test('whatever it takes, Joi takes', (t) => {
  const fits = compileFits(schema);
  const strict = schema.prefs({ convert: false });
  t.true(fits(sound));
  const names = [...Object.keys(sound), 'note', 'stranger'];
  fc.assert(
    fc.property(fc.constantFrom(...names), values, (name, value) => {
      const changed = { ...sound, [name]: value };
      return !fits(changed) || strict.validate(changed).error === undefined;
    }),
    { numRuns: 2_000 },
  );
  for (const name of Object.keys(sound)) t.false(fits({ ...sound, [name]: undefined }), name);
  t.false(fits({ ...sound, stranger: 1 }));
  t.false(fits({ ...sound, items: [] }));
});

test('what it does not know it leaves to Joi', (t) => {
  t.false(compileFits(object({ when: text().isoDate() }))({ when: '2026-11-20' }));
  t.false(compileFits(object({ name: text().default('x') }))({ name: 'y' }));
  for (const { payload } of jobs) t.false(compileFits(payload)({}));
});
