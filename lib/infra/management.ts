// RabbitMQ's management API: what only the broker knows of its queues, some seconds old.
import type { Http } from './http.ts';

export type ManagedQueue = {
  name: string;
  unacked: number;
  inPerSecond: number;
  outPerSecond: number;
};

export type Management = {
  /** Every queue of the virtual host. @throws Error when it does not answer as it should */
  queues(): Promise<ManagedQueue[]>;
};

const columns = [
  ...['name', 'messages_unacknowledged'],
  ...['message_stats.publish_details.rate', 'message_stats.ack_details.rate'],
].join(',');

type Listed = {
  name?: unknown;
  messages_unacknowledged?: unknown;
  message_stats?: { publish_details?: { rate?: unknown }; ack_details?: { rate?: unknown } };
};

const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Asks at `url`, which holds user and password, about the virtual host of `amqpUrl`. */
export const createManagement = (given: {
  http: Http;
  url: string;
  amqpUrl: string;
}): Management => {
  const { origin, username, password } = new URL(given.url);
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const vhost = new URL(given.amqpUrl).pathname.slice(1) || '%2F';
  return {
    queues: async () => {
      const { status, text } = await given.http.send({
        method: 'GET',
        url: `${origin}/api/queues/${vhost}?columns=${columns}`,
        headers: { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
      });
      if (status !== 200) throw new Error(`the management API answered ${status}`);
      return (JSON.parse(text) as Listed[]).map((queue) => ({
        name: String(queue.name),
        unacked: numberOf(queue.messages_unacknowledged),
        inPerSecond: numberOf(queue.message_stats?.publish_details?.rate),
        outPerSecond: numberOf(queue.message_stats?.ack_details?.rate),
      }));
    },
  };
};
