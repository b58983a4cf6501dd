// Grouped acknowledgements against a model of the broker: only what is finished, and nothing twice.
import test from 'ava';
import fc from 'fast-check';
import { createAcks } from '../../../lib/infra/queue/acks.ts';

type Sent = { tag: number; multiple: boolean };

/** A channel as the broker keeps it: an ack of an unknown tag closes a channel, here it throws. */
const aChannel = () => {
  const unacked = new Set<number>();
  const acked: number[] = [];
  const sent: Sent[] = [];
  const one = (tag: number): void => {
    if (!unacked.delete(tag)) throw new Error(`unknown delivery tag ${tag}`);
    acked.push(tag);
  };
  const ack = ({ fields }: { fields: { deliveryTag: number } }, multiple = false): void => {
    const { deliveryTag: tag } = fields;
    sent.push({ tag, multiple });
    if (multiple) for (const each of [...unacked].filter((known) => known < tag)) one(each);
    one(tag);
  };
  return { ack, unacked, acked, sent };
};

const delivered = (count: number) => {
  const channel = aChannel();
  const acks = createAcks(channel);
  for (let tag = 1; tag <= count; tag++) {
    channel.unacked.add(tag);
    acks.delivered(tag);
  }
  return { channel, acks };
};

test('a finished prefix is one multiple ack, the rest goes singly', (t) => {
  const { channel, acks } = delivered(6);
  for (const tag of [3, 1, 2, 5]) acks.finished(tag);
  acks.flush();
  t.deepEqual(channel.sent, [
    { tag: 3, multiple: true },
    { tag: 5, multiple: false },
  ]);
  t.deepEqual([...channel.unacked], [4, 6]);
});

test('acks leave by themselves at the end of the turn', async (t) => {
  const { channel, acks } = delivered(3);
  acks.finished(1);
  acks.finished(2);
  t.deepEqual(channel.sent, []);
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(channel.sent, [{ tag: 2, multiple: true }]);
});

test('when held back, only prefixes go; the end is one ack for all that were finished', async (t) => {
  const { channel, acks } = delivered(5);
  acks.hold();
  for (const tag of [4, 2, 1]) acks.finished(tag);
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(channel.sent, [{ tag: 2, multiple: true }]);
  acks.finished(3);
  acks.flush();
  t.deepEqual(channel.sent.slice(1), [{ tag: 4, multiple: true }]);
  t.is(acks.inHand(), 1);
});

test('a channel that is gone makes no trouble, then or later', (t) => {
  const acks = createAcks({
    ack: () => {
      throw new Error('Channel closed');
    },
  });
  for (const tag of [1, 2, 3]) acks.delivered(tag);
  acks.finished(3);
  t.notThrows(() => acks.flush());
  acks.finished(1);
  t.notThrows(() => acks.flush());
});

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('deliver' as const), tag: fc.constant(0) }),
    fc.record({ kind: fc.constant('finish' as const), tag: fc.nat(40) }),
    fc.record({ kind: fc.constant('forget' as const), tag: fc.nat(40) }),
    fc.record({ kind: fc.constant('flush' as const), tag: fc.constant(0) }),
  ),
  { maxLength: 200 },
);

test('whatever the order, each finished delivery is acked once and no other ever', (t) => {
  fc.assert(
    fc.property(steps, (run) => {
      const channel = aChannel();
      const acks = createAcks(channel);
      const finished = new Set<number>();
      const rejected = new Set<number>();
      let next = 1;
      for (const { kind, tag } of run) {
        if (kind === 'deliver') {
          channel.unacked.add(next);
          acks.delivered(next++);
        } else if (kind === 'flush') acks.flush();
        else if (tag === 0 || tag >= next || rejected.has(tag)) continue;
        else if (kind === 'finish') {
          finished.add(tag);
          acks.finished(tag);
        } else if (!finished.has(tag)) {
          rejected.add(tag);
          acks.forget(tag);
          channel.unacked.delete(tag);
        }
      }
      acks.flush();
      return (
        channel.acked.length === finished.size && channel.acked.every((tag) => finished.has(tag))
      );
    }),
    { numRuns: 500 },
  );
  t.pass();
});
