// npm run test:faults: kills and stops everything under load, then counts what must never have happened.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { countInvariants, readMessages, readQueues } from './invariants.ts';
import type { Invariant } from './judge.ts';
import { type Load, linkPhones, seedSenders, startLoad } from './load.ts';
import { script } from './script.ts';
import { countSlowClients } from './slow-clients.ts';
import { type Stand, startStand } from './stand.ts';
import { countWebhooks } from './webhooks.ts';

const { values } = parseArgs({
  options: {
    sends: { type: 'string', default: '12000' },
    rate: { type: 'string', default: '70' },
    only: { type: 'string', default: 'messages,webhooks,slow-clients' },
    help: { type: 'boolean', default: false },
  },
});

const help = `npm run test:faults -- [options]
  --sends N   codes to send in all (12000)
  --rate N    codes a second (70)
  --only P    one part: messages (all processes and engines, about ten minutes),
              webhooks (the webhook worker twenty times, about four), or
              slow-clients (thousands of half-open, idle and dripping connections, about two)
`;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A code lives five minutes, and the sweep comes a minute later at most. */
const settleMs = 400_000;

const settled = async (stand: Stand): Promise<boolean> => {
  const open = (await readMessages(stand.file())).filter(({ status }) => status === 'sent');
  return open.length === 0 && Object.keys(await readQueues(stand.file())).length === 0;
};

const waitUntilSettled = async (stand: Stand): Promise<void> => {
  const until = Date.now() + settleMs;
  while (Date.now() < until && !(await settled(stand))) await sleep(5_000);
};

/** Spreads the faults over the load, a breath between them. */
const breakThings = async (stand: Stand): Promise<void> => {
  for (const step of script(stand)) {
    await sleep(3_000);
    const startedAt = Date.now();
    await step.run();
    say(`  ${step.name.padEnd(44)} ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  }
};

const countBy = (names: string[]): string =>
  [...Map.groupBy(names, (name) => name)]
    .sort(([, left], [, right]) => right.length - left.length)
    .map(([name, all]) => `  ${String(all.length).padStart(7)}  ${name}`)
    .join('\n');

const reportInvariants = (invariants: readonly Invariant[]): void => {
  for (const { name, violations } of invariants) {
    say(`${violations.length === 0 ? '✓' : '✗'} ${name}`);
    for (const violation of violations.slice(0, 5)) say(`    ${violation}`);
    if (violations.length > 5) say(`    … ${violations.length} in all`);
  }
};

const report = ({ seen, verifies }: Load, invariants: Invariant[]): void => {
  say('\nAnswers to sends');
  say(countBy(seen.map(({ status, code }) => `${status || 'connection lost'} ${code ?? ''}`)));
  say('\nAnswers to verifies');
  for (const [name, count] of Object.entries(verifies))
    say(`  ${String(count).padStart(7)}  ${name}`);
  say('');
  reportInvariants(invariants);
};

const runWebhooks = async (folder: string): Promise<boolean> => {
  // Its receivers are on this machine.
  process.env.WEBHOOK_ALLOWED_HOSTS = '127.0.0.1=*';
  const stand = await startStand(join(folder, 'webhooks-stack'));
  process.once('SIGINT', () => void stand.stop().then(() => process.exit(130)));
  try {
    const invariants = await countWebhooks(stand, say);
    reportInvariants(invariants);
    return invariants.every(({ violations }) => violations.length === 0);
  } finally {
    await stand.stop();
  }
};

const runSlowClients = async (folder: string): Promise<boolean> => {
  const stand = await startStand(join(folder, 'slow-clients-stack'));
  process.once('SIGINT', () => void stand.stop().then(() => process.exit(130)));
  try {
    const invariants = await countSlowClients(stand, say);
    reportInvariants(invariants);
    return invariants.every(({ violations }) => violations.length === 0);
  } finally {
    await stand.stop();
  }
};

const run = async (folder: string): Promise<boolean> => {
  const stand = await startStand(join(folder, 'stack'));
  process.once('SIGINT', () => void stand.stop().then(() => process.exit(130)));
  try {
    const senders = await seedSenders(stand.file());
    const plan = { total: Number(values.sends), perSecond: Number(values.rate) };
    await linkPhones(stand.file(), senders, plan.total);
    say(`Sending ${plan.total} codes, ${plan.perSecond} a second, and breaking things…`);
    const load = startLoad(stand.file(), senders, plan);
    await breakThings(stand);
    await load.end();
    say('Waiting until every message has its final state…');
    await waitUntilSettled(stand);
    const invariants = await countInvariants(stand.file(), load.seen);
    report(load, invariants);
    const result = { seen: load.seen, verifies: load.verifies, invariants };
    writeFileSync(join(folder, 'result.json'), JSON.stringify(result, null, 2));
    return invariants.every(({ violations }) => violations.length === 0);
  } finally {
    await stand.stop();
  }
};

// Thousands of jobs a minute would hide the line that says a worker is ready.
process.env.LOG_LEVEL = 'warn';

if (values.help) {
  say(help);
} else {
  const folder = resolve(process.env.TESSERA_STATE ?? '.local', 'faults');
  mkdirSync(folder, { recursive: true });
  const parts = values.only.split(',');
  const messages = parts.includes('messages') ? await run(folder) : true;
  const webhooks = parts.includes('webhooks') ? await runWebhooks(folder) : true;
  const slowClients = parts.includes('slow-clients') ? await runSlowClients(folder) : true;
  const sound = messages && webhooks && slowClients;
  say(
    sound ? '\nNothing that must not happen has happened.' : '\nSomething happened that must not.',
  );
  process.exitCode = sound ? 0 : 1;
}
