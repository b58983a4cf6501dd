// A virtual host of its own for each test file, made through RabbitMQ's management API.
import { testUrl, uniqueName } from './names.ts';

export type TestVhost = {
  name: string;
  /** AMQP address of the virtual host. */
  url: string;
  /** Deletes the virtual host with all its queues. */
  drop(): Promise<void>;
};

const request = async (method: string, path: string, body?: unknown): Promise<void> => {
  const url = testUrl('TESSERA_TEST_RABBIT_MANAGEMENT_URL');
  const answer = await fetch(new URL(path, url.origin), {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await answer.arrayBuffer();
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`RabbitMQ answered ${answer.status} to ${method} ${path}`);
  }
};

/** Deletes a virtual host by name; a missing one is no error. */
export const deleteVhost = (name: string): Promise<void> =>
  request('DELETE', `/api/vhosts/${encodeURIComponent(name)}`);

/** Makes a virtual host whose name begins with `prefix`, fully open to the test user. */
export const createVhost = async (prefix: string): Promise<TestVhost> => {
  const name = uniqueName(prefix);
  const url = testUrl('TESSERA_TEST_AMQP_URL');
  await request('PUT', `/api/vhosts/${name}`, {});
  const all = { configure: '.*', write: '.*', read: '.*' };
  await request('PUT', `/api/permissions/${name}/${url.username}`, all);
  url.pathname = `/${name}`;
  return { name, url: url.href, drop: () => deleteVhost(name) };
};
