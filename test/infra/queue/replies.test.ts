// Asking and answering: several answers to one question, late ones, lost ones, and what a broken line leaves of them.
import test from 'ava';
import { aJob, createLine, createRig, keptLog, named, type Rig, until, work } from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('replies');
});
test.after.always(() => rig?.close());

const echo = aJob('replies.echo');

test('a job is answered several times, in order, to the one who asked', async (t) => {
  const [asker, worker] = [await rig.broker([echo]), await rig.broker([echo])];
  await worker.consume(echo, async ({ number }, { replyTo = '', correlationId = '' }) => {
    worker.reply({ replyTo, correlationId }, { number, step: 1 });
    worker.reply({ replyTo, correlationId }, { number, step: 2 });
    return { kind: 'done' };
  });
  const ask = async (number: number): Promise<unknown[]> => {
    const { messageId } = named();
    const box = asker.expectReplies(messageId);
    const replyTo = asker.replyAddress() ?? '';
    await asker.publish(echo, work(number), { messageId, replyTo, correlationId: messageId });
    const answers = [await box.next(5_000), await box.next(5_000)];
    box.close();
    return answers;
  };
  const numbers = Array.from({ length: 200 }, (_, number) => number);
  const answers = await Promise.all(numbers.map(ask));
  t.deepEqual(
    answers,
    numbers.map((number) => [
      { number, step: 1 },
      { number, step: 2 },
    ]),
  );
  t.is(worker.stats().replyLost, 0);
});

test('a box keeps what comes before anybody looks, ends a wait when closed, and times out', async (t) => {
  const broker = await rig.broker([]);
  const to = { replyTo: broker.replyAddress() ?? '', correlationId: 'early' };
  const box = broker.expectReplies('early');
  broker.reply(to, 1);
  broker.reply(to, 2);
  t.is(await box.next(5_000), 1);
  t.is(await box.next(5_000), 2);
  t.is(await box.next(20), undefined);
  const waiting = box.next(60_000);
  box.close();
  t.is(await waiting, undefined);
  // Replies come in order: when the marker is there, the late one has come and gone.
  const marker = broker.expectReplies('marker');
  broker.reply(to, 'late');
  broker.reply({ ...to, correlationId: 'marker' }, 'marker');
  t.is(await marker.next(5_000), 'marker');
  t.is(await broker.expectReplies('early').next(20), undefined);
});

test('an answer to nobody is counted, whoever asked having left or never been there', async (t) => {
  const [asker, worker] = [await rig.broker([]), await rig.broker([])];
  const replyTo = asker.replyAddress() ?? '';
  await asker.close();
  worker.reply({ replyTo, correlationId: 'x' }, {});
  worker.reply({ replyTo: 'amq.gen-never', correlationId: 'x' }, {});
  await until(() => worker.stats().replyLost === 2);
  t.is(worker.stats().returned, 0);
});

test('answers of one turn travel together, and each finds its own box', async (t) => {
  const worker = await rig.broker([]);
  const operator = await rig.operator();
  const { queue } = await operator.assertQueue('', { exclusive: true });
  const ids = Array.from({ length: 20 }, (_, index) => `q${index}`);
  for (const correlationId of ids) worker.reply({ replyTo: queue, correlationId }, correlationId);
  const { content } = await rig.take(queue);
  // The same message, sent to one who waits for all of them.
  const asker = await rig.broker([]);
  const boxes = ids.map((id) => asker.expectReplies(id));
  operator.sendToQueue(asker.replyAddress() ?? '', content);
  t.deepEqual(await Promise.all(boxes.map((box) => box.next(5_000))), ids);
});

test('an answer without a connection is counted too', async (t) => {
  const broker = await rig.broker([], { start: false });
  broker.reply({ replyTo: 'q', correlationId: 'x' }, {});
  await until(() => broker.stats().replyLost === 1);
  t.pass();
});

test('a reply that is none of ours disturbs nobody, and its text is not logged', async (t) => {
  const log = keptLog();
  const broker = await rig.broker([], { log });
  const address = broker.replyAddress() ?? '';
  const operator = await rig.operator();
  const box = broker.expectReplies('x');
  operator.sendToQueue(address, Buffer.from('code 123456'));
  operator.sendToQueue(address, Buffer.from('{"answers":"code 123456"}'));
  operator.sendToQueue(address, Buffer.from('{"answer":"code 123456"}'));
  operator.sendToQueue(address, Buffer.from('{"answers":[["unknown",{}],["x",{"fine":true}]]}'));
  t.deepEqual(await box.next(5_000), { fine: true });
  t.is(broker.replyAddress(), address);
  t.false(log.lines.some((line) => /123456|code/.test(line)));
});

test('a box outlives a lost connection; the address is new, and the old one is nobody', async (t) => {
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const [asker, worker] = [await rig.broker([], { urls: [line.url] }), await rig.broker([])];
  const old = asker.replyAddress() ?? '';
  const box = asker.expectReplies('x');
  line.cut();
  await until(() => asker.replyAddress() === undefined);
  const address = await until(() => asker.replyAddress());
  t.not(address, old);
  worker.reply({ replyTo: old, correlationId: 'x' }, 'late');
  worker.reply({ replyTo: address, correlationId: 'x' }, 'here');
  t.is(await box.next(5_000), 'here');
  await until(() => worker.stats().replyLost === 1);
});

test('a reply queue that is deleted is made anew', async (t) => {
  const broker = await rig.broker([]);
  const old = broker.replyAddress() ?? '';
  // Exclusive: only its own connection may delete it.
  await broker.channels.get('replies')?.deleteQueue(old);
  const address = await until(() => {
    const now = broker.replyAddress();
    return now !== old && now;
  });
  const box = broker.expectReplies('x');
  broker.reply({ replyTo: address, correlationId: 'x' }, 'again');
  t.is(await box.next(5_000), 'again');
});
