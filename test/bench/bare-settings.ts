// What the two processes of the bare pipeline share: where its engines are, its queue and the shape of its job.
import { type ChannelModel, connect } from 'amqplib';

/** The bare pipeline's own queue; it lives in a virtual host of its own. */
export const bareQueue = 'bare.send';

/** A send on its way to the worker. */
export type BareJob = { id: string; phone: string; code: string };

/** What the worker answers: the provider's id of the message. */
export type BareReply = { wamid: string };

/** A variable of the environment. @throws Error when it is not set */
export const setting = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set.`);
  return value;
};

/** A connection as a careful hand would open it: without Nagle's delay. */
export const openConnection = (): Promise<ChannelModel> =>
  connect(setting('BARE_AMQP_URL'), { noDelay: true });

/** Declares the queue: quorum, as the product's are. */
export const declareQueue = async (model: ChannelModel): Promise<void> => {
  const channel = await model.createChannel();
  await channel.assertQueue(bareQueue, {
    durable: true,
    arguments: { 'x-queue-type': 'quorum' },
  });
  await channel.close();
};

/** Says that the process is ready, in the words the stack waits for. */
export const sayReady = (): void => {
  process.stdout.write(`${JSON.stringify({ msg: 'ready' })}\n`);
};

/** Ends the process without ceremony: its engines are thrown away. */
export const endOnSignal = (): void => {
  process.once('SIGTERM', () => process.exit(0));
};
