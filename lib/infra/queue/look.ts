// A look at a broker from outside: its version, and what stands in queues; nothing is declared or consumed.
import { type ChannelModel, connect } from 'amqplib';
import { closeModel, readAddresses } from './connection.ts';

export type BrokerLook = {
  version: string;
  /** Undefined when there is no such queue. */
  queue(name: string): Promise<{ ready: number; consumers: number } | undefined>;
  close(): Promise<void>;
};

const notFound = 404;

const lookAtQueue = async (model: ChannelModel, name: string) => {
  // The broker closes the channel on which a missing queue was asked for, so each gets its own.
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  try {
    const { messageCount, consumerCount } = await channel.checkQueue(name);
    await channel.close();
    return { ready: messageCount, consumers: consumerCount };
  } catch (error) {
    if ((error as { code?: unknown }).code === notFound) return undefined;
    throw error;
  }
};

/** Connects to the first address that answers. @throws the last one's error */
export const lookAtBroker = async (urls: readonly string[], name: string): Promise<BrokerLook> => {
  let last: unknown;
  for (const url of readAddresses(urls)) {
    try {
      const options = { timeout: 5_000, clientProperties: { connection_name: name } };
      const model = await connect(url, options);
      model.on('error', () => undefined);
      const { serverProperties } = model.connection as unknown as {
        serverProperties: { version?: string };
      };
      return {
        version: serverProperties.version ?? 'unknown',
        queue: (queue) => lookAtQueue(model, queue),
        close: () => closeModel(model),
      };
    } catch (error) {
      last = error;
    }
  }
  throw last;
};
