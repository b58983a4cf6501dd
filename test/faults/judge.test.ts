// Each violation of a fault run is found when it is planted in the findings of a sound one.
import test from 'ava';
import { type Findings, judge } from './judge.ts';
import type { Seen } from './load.ts';

const one = (seen: Partial<Seen>): Seen => ({
  ...{ phone: '+1', status: 200, code: undefined, messageId: undefined },
  ...{ repeated: false, verified: false },
  ...seen,
});

/** One message over each channel, and one that failed without having reached anybody. */
const sound = {
  seen: [
    one({ phone: '+11', messageId: 'a', verified: true }),
    one({ phone: '+12', messageId: 'b' }),
    one({ phone: '+13', status: 500, code: 'DELIVERY_FAILED' }),
  ],
  messages: [
    { id: 'a', phone: '+11', status: 'verified' },
    { id: 'b', phone: '+12', status: 'expired' },
    { id: 'c', phone: '+13', status: 'failed' },
  ],
  whatsapp: new Map([['a', { accepted: 1, delivered: 1 }]]),
  telegram: new Map([['+12', { accepted: 1, delivered: 1 }]]),
  queues: {},
  differences: [],
} satisfies Findings;

const violated = (change: Partial<Findings>): string[] =>
  judge({ ...sound, ...change })
    .filter(({ violations }) => violations.length > 0)
    .map(({ name }) => name);

test('a sound run violates nothing', (t) => {
  t.deepEqual(violated({}), []);
});

const once = { accepted: 1, delivered: 1 };
const plants: [string, Partial<Findings>, RegExp][] = [
  [
    'sent twice by WhatsApp',
    { whatsapp: new Map([['a', { ...once, accepted: 2 }]]) },
    /sent twice/,
  ],
  [
    'sent twice by Telegram',
    { telegram: new Map([['+12', { ...once, accepted: 2 }]]) },
    /sent twice/,
  ],
  ['a 200 that no channel took', { telegram: new Map() }, /no 200/],
  ['no row', { whatsapp: new Map([...sound.whatsapp, ['x', once]]) }, /without a row/],
  [
    'no row of Telegram’s',
    { telegram: new Map([...sound.telegram, ['+19', once]]) },
    /without a row/,
  ],
  [
    'no final state',
    { messages: [...sound.messages, { id: 'd', phone: '+14', status: 'sent' }] },
    /final/,
  ],
  [
    'a verification lost',
    { messages: [{ id: 'a', phone: '+11', status: 'expired' }, ...sound.messages.slice(1)] },
    /lost/,
  ],
  ['a queue that is not empty', { queues: { 'billing.charge.dead': 1 } }, /queue/],
  ['books that differ', { differences: ['x'] }, /books/],
];

for (const [name, change, expected] of plants) {
  test(`found: ${name}`, (t) => {
    const found = violated(change);
    t.is(found.length, 1);
    t.regex(found[0] ?? '', expected);
  });
}

for (const code of ['DELIVERY_FAILED', 'TELEGRAM_UNAVAILABLE', 'CHANNEL_NOT_LINKED']) {
  test(`found: ${code} for a code that arrived, over either channel`, (t) => {
    const seen = [...sound.seen.slice(0, 2), one({ phone: '+13', status: 500, code })];
    const late = {
      whatsapp: new Map([...sound.whatsapp, ['c', once]]),
      telegram: new Map([...sound.telegram, ['+13', once]]),
    };
    t.deepEqual(violated({ seen }), []);
    for (const [channel, counts] of Object.entries(late)) {
      t.regex(violated({ seen, [channel]: counts })[0] ?? '', /that arrived/, channel);
    }
  });
}
