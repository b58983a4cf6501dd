// RabbitMQ's management API, as far as the tests of the queue layer look at the broker from outside.
import { testUrl } from '../../support/names.ts';
import { until } from './rig.ts';

const call = async <T>(method: string, path: string): Promise<T> => {
  const url = testUrl('TESSERA_TEST_RABBIT_MANAGEMENT_URL');
  const credentials = Buffer.from(`${url.username}:${url.password}`).toString('base64');
  const answer = await fetch(new URL(path, url.origin), {
    method,
    headers: { authorization: `Basic ${credentials}` },
  });
  const text = await answer.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
};

type ListedConnection = { name: string; client_properties?: { connection_name?: string } };

const named = async (vhost: string, name: string): Promise<ListedConnection[]> => {
  // The API fails, without a body, when two ask for the first time at once: it starts the cache of the list twice.
  const path = `/api/vhosts/${vhost}/connections`;
  const all = (await call<ListedConnection[] | undefined>('GET', path)) ?? [];
  return all.filter(({ client_properties: known }) => known?.connection_name === name);
};

export const management = {
  queues: (vhost: string) =>
    call<{ name: string; arguments: Record<string, unknown> }[]>(
      'GET',
      `/api/queues/${vhost}?columns=name,arguments`,
    ),
  bindings: (vhost: string) =>
    call<{ source: string; destination: string; routing_key: string }[]>(
      'GET',
      `/api/bindings/${vhost}`,
    ),
  /** Ends the connection of that name from the broker's side; the API's list is seconds old, so it is waited for. */
  closeConnection: async (vhost: string, name: string): Promise<void> => {
    const [found] = await until(async () => {
      const list = await named(vhost, name);
      return list.length > 0 ? list : undefined;
    });
    await call('DELETE', `/api/connections/${encodeURIComponent(found?.name ?? '')}`);
  },
};
