// RabbitMQ's management API, as far as tests look at the broker from outside.
import { testUrl } from './names.ts';

const call = async (method: string, path: string): Promise<unknown> => {
  const url = testUrl('TESSERA_TEST_RABBIT_MANAGEMENT_URL');
  const answer = await fetch(new URL(path, url.origin), {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}`,
    },
  });
  const text = await answer.text();
  return text === '' ? undefined : JSON.parse(text);
};

export type ListedQueue = { name: string; arguments: Record<string, unknown> };

export const listQueues = async (vhost: string): Promise<ListedQueue[]> =>
  (await call('GET', `/api/queues/${vhost}?columns=name,arguments`)) as ListedQueue[];

type Connection = { name: string; client_properties?: { connection_name?: string } };

/** Ends every connection whose name begins with `prefix`; the list is some seconds old, so it waits for them. */
export const closeConnections = async (prefix: string): Promise<void> => {
  for (let tries = 0; tries < 100; tries++) {
    const all = (await call('GET', '/api/connections')) as Connection[];
    const found = all.filter((one) => one.client_properties?.connection_name?.startsWith(prefix));
    await Promise.all(
      found.map(({ name }) => call('DELETE', `/api/connections/${encodeURIComponent(name)}`)),
    );
    if (found.length >= 2) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no connections named ${prefix}`);
};
