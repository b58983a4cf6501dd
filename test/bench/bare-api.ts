// The HTTP door of the bare pipeline: one Redis call, one confirmed publish, one reply; nothing else is done.
// It is written on the packages the product stands on, each used as its manual says.
import { randomInt } from 'node:crypto';
import Router from '@koa/router';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { koaBody } from 'koa-body';
import { uuidv7 } from 'uuidv7';
import {
  type BareJob,
  type BareReply,
  bareQueue,
  declareQueue,
  endOnSignal,
  openConnection,
  sayReady,
  setting,
} from './bare-settings.ts';

const replyWithinMs = 10_000;

type Waiting = { settle(reply: BareReply | undefined): void };

/** Answers to this process: an exclusive queue whose messages are told apart by their correlation id. */
const openReplies = async (model: ChannelModel) => {
  const waiting = new Map<string, Waiting>();
  const channel = await model.createChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true, durable: false });
  const onReply = (id: string, content: Buffer) =>
    waiting.get(id)?.settle(JSON.parse(content.toString()) as BareReply);
  await channel.consume(
    queue,
    (message) => message && onReply(String(message.properties.correlationId), message.content),
    { noAck: true },
  );
  const expect = (id: string): Promise<BareReply | undefined> =>
    new Promise((resolve) => {
      const settle = (reply: BareReply | undefined) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(reply);
      };
      const timer = setTimeout(() => settle(undefined), replyWithinMs);
      waiting.set(id, { settle });
    });
  return { queue, expect };
};

const publish = (channel: ConfirmChannel, replyTo: string, job: BareJob): Promise<void> =>
  new Promise((resolve, reject) => {
    channel.publish(
      '',
      bareQueue,
      Buffer.from(JSON.stringify(job)),
      { persistent: true, mandatory: true, messageId: job.id, correlationId: job.id, replyTo },
      (error: unknown) => (error ? reject(error) : resolve()),
    );
  });

const prefix = setting('BARE_KEY_PREFIX');
const redis = new Redis(setting('REDIS_URL'), { enableAutoPipelining: true });
const publishing = await openConnection();
const consuming = await openConnection();
await declareQueue(publishing);
const channel = await publishing.createConfirmChannel();
channel.on('return', () => process.exit(1));
const replies = await openReplies(consuming);

const router = new Router();
router.post('/send', koaBody(), async (ctx) => {
  const { phone } = ctx.request.body as { phone: string };
  const id = uuidv7();
  const won = await redis.set(`${prefix}${phone}`, id, 'PX', 30_000, 'NX');
  if (won === null) ctx.throw(429, 'too soon');
  const reply = replies.expect(id);
  const code = String(randomInt(0, 1_000_000)).padStart(6, '0');
  await publish(channel, replies.queue, { id, phone, code });
  if (!(await reply)) ctx.throw(504, 'no reply');
  ctx.body = { data: { message_id: id, status: 'sent', expires_in: 300 } };
});

new Koa().use(router.routes()).listen(Number(setting('BARE_PORT')), '127.0.0.1', sayReady);
endOnSignal();
