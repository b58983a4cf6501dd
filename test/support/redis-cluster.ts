// A real Redis Cluster for tests: masters on free ports that share the 16,384 slots evenly, no replicas.
import { closeRedis, type RedisClient } from '../../lib/infra/redis.ts';
import { connectTo, freePort, type RedisServer, startRedisServer, until } from './redis-server.ts';

export type TestCluster = {
  /** Comma list, as REDIS_URL has it. */
  url: string;
  nodes: RedisServer[];
  /** The node that holds a key. */
  nodeOf(key: string): Promise<RedisServer>;
  stop(): Promise<void>;
};

const slots = 16_384;

const startNode = async (): Promise<RedisServer> =>
  startRedisServer([
    ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
    // Alone, a node does not know its address and would not name it to clients.
    ...['--cluster-announce-ip', '127.0.0.1'],
    // One node down must not take the slots of the others with it.
    ...['--cluster-require-full-coverage', 'no', '--cluster-node-timeout', '10000'],
  ]);

const busPort = async (redis: RedisClient): Promise<string> => {
  const [, port = ''] = (await redis.config('GET', 'cluster-port')) as string[];
  return port;
};

const join = async (nodes: readonly RedisServer[], clients: readonly RedisClient[]) => {
  const share = Math.ceil(slots / nodes.length);
  for (const [index, client] of clients.entries()) {
    const last = Math.min((index + 1) * share, slots) - 1;
    await client.cluster('ADDSLOTSRANGE', index * share, last);
  }
  for (const [index, node] of nodes.slice(1).entries()) {
    const client = clients[index + 1];
    if (client !== undefined) {
      await clients[0]?.call(
        ...['CLUSTER', 'MEET'],
        ...['127.0.0.1', String(node.port), await busPort(client)],
      );
    }
  }
};

const isWhole = async (client: RedisClient, size: number): Promise<boolean> => {
  const info = await client.cluster('INFO');
  return info.includes('cluster_state:ok') && info.includes(`cluster_slots_ok:${slots}`)
    ? info.includes(`cluster_size:${size}`)
    : false;
};

/** Starts `size` masters and returns once each of them sees the whole cluster. */
export const startRedisCluster = async (size = 1): Promise<TestCluster> => {
  const nodes = await Promise.all(Array.from({ length: size }, startNode));
  const clients = await Promise.all(nodes.map((node) => connectTo(node.url)));
  await join(nodes, clients);
  await until(async () => {
    const seen = await Promise.all(clients.map((client) => isWhole(client, size)));
    return seen.every(Boolean);
  }, 30_000);
  const [first] = clients;
  if (first === undefined) throw new Error('a cluster needs a node');
  const slotOwner = async (key: string): Promise<RedisServer> => {
    const slot = Number(await first.cluster('KEYSLOT', key));
    const node = nodes[Math.floor(slot / Math.ceil(slots / size))];
    if (node === undefined) throw new Error('no node for this slot');
    return node;
  };
  return {
    // A trailing comma makes a list of one.
    url: `${nodes.map((node) => node.url).join(',')},`,
    nodes,
    nodeOf: slotOwner,
    stop: async () => {
      await Promise.all(clients.map(closeRedis));
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
};
