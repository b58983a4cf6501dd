// What 200 parallel logins do to sends: the p99 of a send while they go on, and while nothing else happens.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpLine } from './http-line.ts';
import { phoneOf } from './recipients.ts';
import type { Bench } from './rounds.ts';

// Method: sends leave at a steady rate, whether or not the ones before were answered. Windows without and with the
// storm take turns, so that both meet the same machine; the sends of all windows of a kind are one sample. In a storm
// 200 clients log in again and again over connections of their own, all 200 at the same moment to begin with; one who
// is told to come back later (503) does so when it was told to.
const everyMs = 20;
const sendsPerWindow = 400;
const windowsOfAKind = 6;
const warmups = 150;
/** Far from the phones of the rounds. */
const firstPhone = 50_000_000;

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** Statuses that the logins were answered, and how often. */
type Counts = Record<string, number>;

const prepareStorm = (port: number) => {
  const program = join(import.meta.dirname, 'login-storm.ts');
  const child: Child = spawn(process.execPath, [program, String(port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // Other people than those who send: where the scheduler shares a core by session, in one of their own.
    detached: true,
  });
  const died = once(child, 'exit').then(() => Promise.reject(new Error('the storm ended early')));
  // Awaited where it matters.
  died.catch(() => undefined);
  const lines = createInterface({ input: child.stdout });
  return {
    begin: (): void => void child.stdin.write('go\n'),
    /** Resolves when the last login was answered. */
    stop: async (): Promise<Counts> => {
      child.stdin.write('stop\n');
      const [line] = (await Promise.race([once(lines, 'line'), died])) as [string];
      return JSON.parse(line) as Counts;
    },
    end: (): void => void child.kill('SIGKILL'),
  };
};

const requestOf = (port: number, key: string, phone: string): string => {
  const body = JSON.stringify({ phone });
  return [
    'POST /v1/otp/send HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
};

/** Sends over as many kept connections as it takes; each answers how long the send took, ms. */
const createSender = ({ keys, ports }: Pick<Bench, 'keys' | 'ports'>) => {
  const idle: ReturnType<typeof createHttpLine>[] = [];
  const all: ReturnType<typeof createHttpLine>[] = [];
  let next = firstPhone;
  const open = () => {
    const line = createHttpLine(ports.api);
    all.push(line);
    return line;
  };
  return {
    /** @throws Error when the answer is not 200 */
    send: async (): Promise<number> => {
      const line = idle.pop() ?? open();
      const request = requestOf(ports.api, keys[next % keys.length] ?? '', phoneOf(next++));
      const startedAt = performance.now();
      const { status, body } = await line.ask(request);
      const ms = performance.now() - startedAt;
      if (status !== 200) throw new Error(`a send was answered ${status}: ${body}`);
      idle.push(line);
      return ms;
    },
    close: (): void => {
      for (const line of all) line.close();
    },
  };
};

const p99Of = (times: readonly number[]): number => {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
};

/** Sends at the steady rate; answers the times, ms. */
const sendMany = async (send: () => Promise<number>, count: number): Promise<number[]> => {
  const times: Promise<number>[] = [];
  const startedAt = performance.now();
  for (let sent = 0; sent < count; sent++) {
    await sleep(Math.max(startedAt + sent * everyMs - performance.now(), 0));
    const sending = send();
    // Whether it failed is asked below, when all have left.
    sending.catch(() => undefined);
    times.push(sending);
  }
  return Promise.all(times);
};

/** The first storm of a process also compiles what answers it, and starts what hashes. */
const warmUp = async (
  send: () => Promise<number>,
  storm: ReturnType<typeof prepareStorm>,
): Promise<void> => {
  storm.begin();
  await sendMany(send, warmups);
  await storm.stop();
  await sendMany(send, warmups);
};

/** The p99 of all windows of a kind, and of each: how far they scatter says what the figure is worth. */
export type LoginFigures = {
  idleMs: number;
  stormMs: number;
  idleByWindow: readonly number[];
  stormByWindow: readonly number[];
  logins: Counts;
};

/** The p99 of a send while nothing else happens, and while 200 people log in, ms; and what the logins came to. */
export const measureLogins = async (
  bench: Pick<Bench, 'keys' | 'ports' | 'learn'>,
): Promise<LoginFigures> => {
  await bench.learn(firstPhone, 2 * warmups + 2 * windowsOfAKind * sendsPerWindow);
  const sender = createSender(bench);
  const storm = prepareStorm(bench.ports.api);
  const [idle, stormy]: [number[][], number[][]] = [[], []];
  const logins: Counts = {};
  try {
    await warmUp(sender.send, storm);
    for (let turn = 0; turn < windowsOfAKind; turn++) {
      idle.push(await sendMany(sender.send, sendsPerWindow));
      storm.begin();
      stormy.push(await sendMany(sender.send, sendsPerWindow));
      for (const [status, count] of Object.entries(await storm.stop())) {
        logins[status] = (logins[status] ?? 0) + count;
      }
    }
    return {
      ...{ idleMs: p99Of(idle.flat()), stormMs: p99Of(stormy.flat()) },
      ...{ idleByWindow: idle.map(p99Of), stormByWindow: stormy.map(p99Of), logins },
    };
  } finally {
    storm.end();
    sender.close();
  }
};
