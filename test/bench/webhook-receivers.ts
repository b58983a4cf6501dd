// The receivers of the webhook benchmark as a process of their own: healthy ones note when events arrive, bad ones never
// answer, or after 15 seconds; some of the healthy ones can be told to die.
import { createServer, type ServerResponse } from 'node:http';

/** What it is told, and what it answers with the port first and then with what has arrived. */
export type Order = { kind: 'reset' } | { kind: 'die'; below: number } | { kind: 'report' };
export type Report = { kind: 'ready'; port: number } | { kind: 'arrived'; latenciesMs: number[] };

const slowMs = 15_000;

let latenciesMs: number[] = [];
let deadBelow = 0;

const answerOf = (kind: string, number: number, response: ServerResponse): void => {
  if (kind === 'ok' && number >= deadBelow) response.end();
  // Half of the bad ones are dead, half are slow.
  else if (kind === 'bad' && number % 2 === 0) setTimeout(() => response.end(), slowMs);
};

const server = createServer((request, response) => {
  const arrivedAt = Date.now();
  const [, kind = '', number = ''] = (request.url ?? '').split('/');
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    answerOf(kind === 'bare' ? 'ok' : kind, Number(number), response);
    if (kind !== 'ok' || Number(number) < deadBelow) return;
    // The time of the event stands in the envelope.
    const found = /"timestamp":"([^"]+)"/.exec(Buffer.concat(chunks).toString());
    latenciesMs.push(arrivedAt - Date.parse(found?.[1] ?? ''));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '0.0.0.0', () => {
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  process.send?.({ kind: 'ready', port } satisfies Report);
});

process.on('message', (order: Order) => {
  if (order.kind === 'report') process.send?.({ kind: 'arrived', latenciesMs } satisfies Report);
  else if (order.kind === 'die') deadBelow = order.below;
  else {
    latenciesMs = [];
    deadBelow = 0;
  }
});
process.on('disconnect', () => process.exit());
