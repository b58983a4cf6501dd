// The bare loop that deliveries are held against: it posts the same bodies to the same receivers with undici and nothing
// else, and says how much CPU that took.
import { Agent, request } from 'undici';
import { healthyCount, healthyHost } from './webhook-hosts.ts';

const [port = '', posts = '', concurrency = '', body = ''] = process.argv.slice(2);
const agent = new Agent({ connections: 25, pipelining: 1 });
const headers = {
  'content-type': 'application/json',
  'user-agent': 'bare',
  'webhook-id': 'evt_5f1c0e9b7a3d4c2e8b6f0a1d2c3e4f50',
  'webhook-timestamp': '1795176000',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

let next = 0;
const loop = async (until: number): Promise<void> => {
  while (next < until) {
    const number = next++ % healthyCount;
    const url = `http://${healthyHost(number)}:${port}/bare/${number}`;
    const answer = await request(url, { dispatcher: agent, method: 'POST', headers, body });
    await answer.body.dump();
  }
};
const run = (until: number) =>
  Promise.all(Array.from({ length: Number(concurrency) }, () => loop(until)));

// The first tenth warms up code and connections.
const warm = Math.floor(Number(posts) / 10);
await run(warm);
const before = process.cpuUsage();
await run(warm + Number(posts));
const { user, system } = process.cpuUsage(before);
process.send?.({ cpuMs: (user + system) / 1_000 });
await agent.close();
