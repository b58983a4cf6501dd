// The options of npm run bench.
import { parseArgs } from 'node:util';
import type { Operation } from './load-orders.ts';

/** What is measured by itself, behind the rounds. */
export type Extra = 'charges' | 'logins' | 'deliveries' | 'webhooks';

export type Options = {
  cycles: number;
  seconds: number;
  warmupSeconds: number;
  connections: number;
  accounts: number;
  /** Whether the simulated WhatsApp reports sent and delivered for the product's messages. */
  receipts: boolean;
  /** The operations to measure, in order. */
  operations: readonly Operation[];
  /** Measurements beside them, each with a target of its own. */
  extras: readonly Extra[];
  json: boolean;
  check: boolean;
  /** Processes of the product to profile. */
  profile: readonly string[];
};

export const help = `npm run bench -- [options]

Measures the product against a bare pipeline of the same shape, in one run on private engines:
HTTP in, one Redis call, confirmed publish to a quorum queue, consume, HTTP out, grouped insert, reply.
The rounds alternate: bare, send, deliver, verify, totp, bare, send, …

  --cycles <n>        times each round is run (3)
  --seconds <n>       timed part of a round (8)
  --warmup <n>        untimed seconds before it (2)
  --connections <n>   connections of the load generator, one request each at a time (64)
  --accounts <n>      customers the requests are spread over (1500)
  --only <names>      some of bare,send,deliver,verify,totp; charges (what the billing worker posts a second);
                      logins (a send beside 200 parallel logins); deliveries (what one of a webhook costs
                      against a bare loop); webhooks (what dead endpoints do to healthy ones)
  --no-receipts       the simulated WhatsApp reports neither sent nor delivered
  --quick             one cycle of short rounds, to see that it runs; its figures say little
  --json              the result as JSON on standard output, the table on standard error
  --check             exit code 1 when a target is missed
  --profile <names>   CPU profiles of processes of the product, written to bench-processes/logs
  --help              this text

The JSON is also written to benchmarks/ in the state folder (TESSERA_STATE, .local by default).
`;

const flags = {
  cycles: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '8' },
  warmup: { type: 'string', default: '2' },
  connections: { type: 'string', default: '64' },
  accounts: { type: 'string', default: '1500' },
  only: {
    type: 'string',
    default: 'bare,send,deliver,verify,totp,charges,logins,deliveries,webhooks',
  },
  receipts: { type: 'boolean', default: true },
  quick: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  profile: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

const numberOf = (name: string, text: string, min: number): number => {
  const value = Number(text);
  if (Number.isFinite(value) && value >= min) return value;
  throw new Error(`--${name} must be a number of at least ${min}, not "${text}".`);
};

const known: readonly Operation[] = ['bare', 'send', 'deliver', 'verify', 'totp'];

const knownExtras: readonly Extra[] = ['charges', 'logins', 'deliveries', 'webhooks'];

const chosen = (text: string): Pick<Options, 'operations' | 'extras'> => {
  const names = new Set(text.split(',').map((name) => name.trim()));
  const all: readonly string[] = [...known, ...knownExtras];
  const wrong = [...names].find((name) => !all.includes(name));
  if (wrong !== undefined) throw new Error(`--only takes ${all.join(', ')}, not "${wrong}".`);
  return {
    operations: known.filter((name) => names.has(name)),
    extras: knownExtras.filter((name) => names.has(name)),
  };
};

/** Reads the options; undefined when help was asked for. @throws Error with what is wrong */
export const readOptions = (args: readonly string[]): Options | undefined => {
  const { values } = parseArgs({ args: [...args], options: flags, allowNegative: true });
  if (values.help) return undefined;
  const whole = (name: 'cycles' | 'connections' | 'accounts') =>
    Math.floor(numberOf(name, values[name], 1));
  return {
    cycles: values.quick ? 1 : whole('cycles'),
    seconds: values.quick ? 3 : numberOf('seconds', values.seconds, 0.5),
    warmupSeconds: values.quick ? 1 : numberOf('warmup', values.warmup, 0),
    connections: whole('connections'),
    accounts: whole('accounts'),
    ...chosen(values.only),
    receipts: values.receipts,
    json: values.json,
    check: values.check,
    profile: values.profile?.split(',') ?? [],
  };
};
