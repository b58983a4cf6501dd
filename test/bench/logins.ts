// What a storm of logins does to sends: the time of a send beside 200 parallel logins every few seconds, and without.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { phoneOf } from './recipients.ts';
import type { Bench } from './rounds.ts';

const everyMs = 50;
const sends = 400;
const stormEveryMs = 4_000;
const warmups = 60;
/** Far from the phones of the rounds. */
const firstPhone = 50_000_000;

/** Sends a code and answers how long that took, ms. @throws Error when the answer is not 200 */
const timeSend = async (url: string, key: string, phone: string): Promise<number> => {
  const startedAt = performance.now();
  const answer = await fetch(`${url}/v1/otp/send`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ phone }),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`a send was answered ${answer.status}: ${text}`);
  return performance.now() - startedAt;
};

const p99Of = (times: readonly number[]): number => {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
};

type Storm = { blow(): void; end(): void };

const prepareStorm = (url: string): Storm => {
  const program = join(import.meta.dirname, 'login-storm.ts');
  const child = spawn(process.execPath, [program, url], { stdio: ['pipe', 'ignore', 'inherit'] });
  return { blow: () => child.stdin.write('go\n'), end: () => child.kill('SIGKILL') };
};

/** The p99 of a send while nothing else happens, and while logins storm, ms. */
export const measureLogins = async (
  bench: Pick<Bench, 'keys' | 'ports' | 'learn'>,
): Promise<{ idleMs: number; stormMs: number }> => {
  const url = `http://127.0.0.1:${bench.ports.api}`;
  await bench.learn(firstPhone, warmups + 2 * sends);
  let next = firstPhone;
  const sendMany = async (count: number): Promise<number[]> => {
    const times: Promise<number>[] = [];
    for (let sent = 0; sent < count; sent++) {
      const key = bench.keys[next % bench.keys.length] ?? '';
      times.push(timeSend(url, key, phoneOf(next++)));
      await sleep(everyMs);
    }
    return Promise.all(times);
  };
  const storm = prepareStorm(url);
  try {
    await sendMany(warmups);
    const idleMs = p99Of(await sendMany(sends));
    const blowing = setInterval(storm.blow, stormEveryMs);
    const stormMs = p99Of(await sendMany(sends).finally(() => clearInterval(blowing)));
    return { idleMs, stormMs };
  } finally {
    storm.end();
  }
};
