// Redriving dead letters with the process killed in the middle: each is delivered or still dead, none twice.
//   node docker/local/run.mjs engines   (prints what to export)   then   node test/faults/redrive.ts [--letters 10000] [--kills 5]
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect } from 'amqplib';
import { createLetters } from '../../lib/infra/queue/letters.ts';
import { telegramUpdate } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { type OpsProcess, startOpsProcess } from '../support/ops-process.ts';
import { type Stack, startStack } from '../support/stack.ts';

const job = telegramUpdate.name;

export type Fire = {
  letters: number;
  /** How often the process is killed before it may finish. */
  kills: number;
  perSecond: number;
  say(line: string): void;
};

/** What was seen after each kill and at the end; a sound run has no doubles and nothing lost or in two places. */
export type Seen = { delivered: number; dead: number; both: number; twice: number; lost: number };
export type Burnt = { afterKills: Seen[]; end: Seen; interrupted: number };

const bury = async (stack: Stack, count: number): Promise<void> => {
  const broker = await connect(stack.config.amqpUrls);
  const channel = await broker.createConfirmChannel();
  for (let number = 0; number < count; number++) {
    const update = { update_id: number, chat_id: 1, user_id: 1, kind: 'other', language: null };
    channel.publish(
      'dead',
      job,
      Buffer.from(JSON.stringify({ ...update, token_hash: null, contact: null })),
      {
        ...{ persistent: true, messageId: newId() },
        headers: {
          attempt: 6,
          reason: 'attempts_exhausted',
          failed_at: Date.now(),
          queue: `${job}.again`,
        },
      },
    );
  }
  await channel.waitForConfirms();
  await broker.close();
};

/** Counts what arrives, by number. */
const countDeliveries = async (stack: Stack) => {
  const arrived = new Map<number, number>();
  const consumer = await stack.worker.broker.consume(
    telegramUpdate,
    async ({ update_id: number }) => {
      arrived.set(number, (arrived.get(number) ?? 0) + 1);
      return { kind: 'done' };
    },
  );
  return { arrived, stop: consumer.stop };
};

const depthOf = async (stack: Stack, queue: string): Promise<number> =>
  (await stack.api.broker.depth(queue)).ready;

/** Until nothing is under way any more: what the broker moves arrives, what a dead process held is back. */
const settle = async (stack: Stack, arrived: ReadonlyMap<number, number>): Promise<void> => {
  for (let quiet = 0, before = -1; quiet < 5; ) {
    await pause(200);
    const now = arrived.size * 1e6 + (await depthOf(stack, `${job}.dead`));
    quiet = now === before && (await depthOf(stack, `${job}.again`)) === 0 ? quiet + 1 : 0;
    before = now;
  }
};

const look = async (
  stack: Stack,
  arrived: ReadonlyMap<number, number>,
  all: number,
): Promise<Seen> => {
  await settle(stack, arrived);
  const { letters } = await createLetters(stack.api).scan(job, all + 1);
  const dead = letters.map(({ content }) => JSON.parse(content.toString()).update_id as number);
  const anywhere = new Set([...dead, ...arrived.keys()]);
  return {
    ...{ delivered: arrived.size, dead: dead.length },
    both: dead.filter((number) => arrived.has(number)).length,
    twice:
      [...arrived.values()].filter((times) => times > 1).length + dead.length - new Set(dead).size,
    lost: all - anywhere.size,
  };
};

const killInTheMiddle = async (
  ops: OpsProcess,
  arrived: ReadonlyMap<number, number>,
  fire: Fire,
): Promise<void> => {
  const from = arrived.size;
  const share = Math.max(1, Math.floor(fire.letters / (fire.kills + 2)));
  await ops.post(`/dead/${job}/redrive`, { per_second: fire.perSecond });
  while (arrived.size < from + share) await pause(1);
  await ops.kill();
};

const interruptedRuns = async (ops: OpsProcess, kills: number): Promise<number> => {
  for (let looks = 0; ; looks++) {
    const { items } = (await ops.get(`/audit?subject=${job}&limit=200`)) as {
      items: { status: string }[];
    };
    const count = items.filter(({ status }) => status === 'interrupted').length;
    if (count >= kills || looks > 60) return count;
    await pause(250);
  }
};

/** Redrives all letters while the process is killed again and again. */
export const redriveUnderFire = async (stack: Stack, fire: Fire): Promise<Burnt> => {
  await bury(stack, fire.letters);
  const { arrived, stop } = await countDeliveries(stack);
  const afterKills: Seen[] = [];
  for (let kill = 0; kill < fire.kills; kill++) {
    await killInTheMiddle(await startOpsProcess(stack.env), arrived, fire);
    const seen = await look(stack, arrived, fire.letters);
    afterKills.push(seen);
    fire.say(`kill ${kill + 1}: ${JSON.stringify(seen)}`);
  }
  const ops = await startOpsProcess(stack.env);
  await ops.post(`/dead/${job}/redrive`, { per_second: fire.perSecond });
  while ((await depthOf(stack, `${job}.dead`)) > 0) await pause(100);
  const end = await look(stack, arrived, fire.letters);
  fire.say(`end: ${JSON.stringify(end)}`);
  const interrupted = await interruptedRuns(ops, fire.kills);
  await ops.kill();
  await stop();
  return { afterKills, end, interrupted };
};

/** Whether nothing that must not happen has happened. */
export const isSound = ({ afterKills, end }: Burnt, letters: number): boolean =>
  [...afterKills, end].every(({ both, twice, lost }) => both === 0 && twice === 0 && lost === 0) &&
  end.delivered === letters &&
  end.dead === 0;

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      letters: { type: 'string', default: '10000' },
      kills: { type: 'string', default: '5' },
      rate: { type: 'string', default: '2000' },
    },
  });
  const stack = await startStack('redrive', { workers: [] });
  const fire: Fire = {
    ...{
      letters: Number(values.letters),
      kills: Number(values.kills),
      perSecond: Number(values.rate),
    },
    say: (line) => process.stdout.write(`${line}\n`),
  };
  try {
    const burnt = await redriveUnderFire(stack, fire);
    const sound = isSound(burnt, fire.letters);
    fire.say(
      `${sound ? '✓' : '✗'} each dead letter is delivered or still dead, none twice; ${burnt.interrupted} interrupted orders on record`,
    );
    process.exitCode = sound ? 0 : 1;
  } finally {
    await stack.close();
  }
};

if (import.meta.main) await main();
