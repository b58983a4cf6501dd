// What becomes of a message that waits for its confirm.
import type { Message } from 'amqplib';
import test from 'ava';
import { createUnconfirmed, type Unconfirmed } from '../../../lib/infra/queue/unconfirmed.ts';

const timeoutMs = 1_000;
const nack = new Error('message nacked');
const cut = new Error('channel closed');

type Heard = 'confirmed' | 'QueueFull' | 'Unroutable' | 'OutcomeUnknown';

const open = (unconfirmed: Unconfirmed, messageId: string, mandatoryKey?: string) => {
  const heard: Heard[] = [];
  const entry = unconfirmed.open({
    ...{ messageId, mandatoryKey },
    resolve: () => heard.push('confirmed'),
    reject: (error) => heard.push(error.name as Heard),
  });
  return { entry, heard };
};

const returnedMessage = (messageId: string, routingKey: string) =>
  ({ properties: { messageId }, fields: { routingKey } }) as unknown as Message;

test('a confirm, a nack and a lost channel are three different ends', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const [one, two, three] = ['a', 'b', 'c'].map((id) => open(unconfirmed, id, 'q'));
  if (!one || !two || !three) return t.fail();
  unconfirmed.settle(one.entry, null);
  unconfirmed.settle(two.entry, nack);
  unconfirmed.settle(three.entry, cut);
  t.deepEqual(
    [one.heard, two.heard, three.heard],
    [['confirmed'], ['QueueFull'], ['OutcomeUnknown']],
  );
  t.deepEqual(unconfirmed.counts, { published: 1, returned: 0, nacked: 1, unknown: 1 });
  t.is(unconfirmed.size(), 0);
});

test('a returned message is unroutable although the broker confirms it', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const { entry, heard } = open(unconfirmed, 'a', 'q');
  unconfirmed.returned(returnedMessage('a', 'q'));
  unconfirmed.settle(entry, null);
  t.deepEqual(heard, ['Unroutable']);
});

test('two messages of one id at the same time: the return counts for its own queue', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const first = open(unconfirmed, 'a', 'here');
  const second = open(unconfirmed, 'a', 'gone');
  unconfirmed.returned(returnedMessage('a', 'gone'));
  unconfirmed.settle(first.entry, null);
  unconfirmed.settle(second.entry, null);
  t.deepEqual([first.heard, second.heard], [['confirmed'], ['Unroutable']]);
});

test('nobody waits longer than the bound, but what the broker still owes is counted', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const { entry, heard } = open(unconfirmed, 'a');
  unconfirmed.failOverdue(entry.deadline - 1);
  t.deepEqual(heard, []);
  unconfirmed.failOverdue(entry.deadline);
  t.deepEqual(heard, ['OutcomeUnknown']);
  t.is(unconfirmed.awaited(), 0);
  t.is(unconfirmed.size(), 1);
  unconfirmed.settle(entry, null);
  t.is(unconfirmed.size(), 0);
  t.deepEqual(heard, ['OutcomeUnknown']);
  t.is(unconfirmed.counts.published, 0);
});

test('a lost connection ends every wait once', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const all = ['a', 'b', 'c'].map((id) => open(unconfirmed, id, 'q'));
  unconfirmed.failAll();
  for (const { entry } of all) unconfirmed.settle(entry, cut);
  t.deepEqual(
    all.map(({ heard }) => heard),
    [['OutcomeUnknown'], ['OutcomeUnknown'], ['OutcomeUnknown']],
  );
  t.is(unconfirmed.counts.unknown, 3);
  t.is(unconfirmed.size(), 0);
});

test('a message that was never sent leaves no trace', (t) => {
  const unconfirmed = createUnconfirmed(timeoutMs);
  const { entry, heard } = open(unconfirmed, 'a', 'q');
  unconfirmed.drop(entry);
  unconfirmed.failAll();
  t.deepEqual(heard, []);
  t.is(unconfirmed.size(), 0);
});
