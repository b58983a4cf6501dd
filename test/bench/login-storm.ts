// 200 people who log in again and again, from a process of its own: "go" on standard input begins, "stop" ends it.
import { setMaxListeners } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpLine, type LineAnswer } from './http-line.ts';

const [, , port = '0', parallel = '200'] = process.argv;
const second = 1_000;
let visitor = Date.now() % 60_000;

/** Everybody has another address each time, so that what is measured is the hashing and not the throttle. */
const nextLogin = (): string => {
  visitor += 1;
  const body = JSON.stringify({
    ...{ email: `nobody${visitor}@tessera.example`, password: 'not a password' },
  });
  return [
    'POST /v1/clients/login HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    `X-Forwarded-For: 10.${(visitor >> 16) & 255}.${(visitor >> 8) & 255}.${visitor & 255}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
};

/** How long the answer says to wait (ms), and no two exactly alike; not at all after an answer to the login itself. */
const pauseOf = ({ status, body }: LineAnswer): number => {
  if (status !== 503) return 0;
  const { error } = JSON.parse(body) as { error: { retry_after_seconds?: number } };
  return (error.retry_after_seconds ?? 1) * second * (1 + Math.random() / 2);
};

/** Logs in until the storm is over; answers the statuses that came, 0 where none did. */
const visit = async (over: AbortSignal): Promise<number[]> => {
  const line = createHttpLine(Number(port));
  const statuses: number[] = [];
  while (!over.aborted) {
    const answer = await line.ask(nextLogin()).catch((): LineAnswer => ({ status: 0, body: '' }));
    statuses.push(answer.status);
    await sleep(pauseOf(answer), undefined, { signal: over }).catch(() => undefined);
  }
  line.close();
  return statuses;
};

const blow = async (over: AbortSignal): Promise<void> => {
  setMaxListeners(0, over);
  const statuses = await Promise.all(Array.from({ length: Number(parallel) }, () => visit(over)));
  const counts = new Map<number, number>();
  for (const status of statuses.flat()) counts.set(status, (counts.get(status) ?? 0) + 1);
  process.stdout.write(`${JSON.stringify(Object.fromEntries(counts))}\n`);
};

let storm = new AbortController();
for await (const line of createInterface({ input: process.stdin })) {
  storm.abort();
  storm = new AbortController();
  if (line === 'go') void blow(storm.signal);
}
