// What the product promises against the bare pipeline, and whether a run kept it.
import type { Operation } from './load-orders.ts';
import type { MemoryFigures, OperationFigures } from './summary.ts';
import type { DeliveryFigures } from './webhook-deliveries.ts';
import type { IsolationFigures } from './webhook-isolation.ts';

export type Verdict = { name: string; value: number; target: string; met: boolean };

const minThroughput = 0.65;
const maxP99 = 2;
const minVerify = 1.3;
const minTotp = 1;
const maxMemoryMb = 200;
/** Heaps breathe; more than this from one cycle to the next is growth. */
const maxGrowth = 1.1;

type Figures = Partial<Record<Operation, OperationFigures>>;

const atLeast = (name: string, value: number, min: number): Verdict => ({
  ...{ name, value },
  target: `≥ ${min}`,
  met: value >= min,
});

const atMost = (name: string, value: number, max: number): Verdict => ({
  ...{ name, value },
  target: `≤ ${max}`,
  met: value <= max,
});

/** Throughput and p99 against the bare pipeline, verify against send, TOTP against verify; those that were measured. */
export const ratioVerdicts = ({ bare, send, deliver, verify, totp }: Figures): Verdict[] => [
  ...[send, deliver].flatMap((figures) =>
    figures && bare
      ? [
          atLeast(
            `${figures.operation} / bare, requests/s`,
            figures.throughput / bare.throughput,
            minThroughput,
          ),
          atMost(`${figures.operation} / bare, p99`, figures.p99Ms / bare.p99Ms, maxP99),
        ]
      : [],
  ),
  ...(verify && send
    ? [atLeast('verify / send, requests/s', verify.throughput / send.throughput, minVerify)]
    : []),
  ...(totp && verify
    ? [atLeast('totp / verify, requests/s', totp.throughput / verify.throughput, minTotp)]
    : []),
];

const minCharges = 10_000;

/** Charges that the billing worker posts a second when its queue is full. */
export const chargesVerdict = (perSecond: number): Verdict =>
  atLeast('charges posted for one account, a second', perSecond, minCharges);

const maxStorm = 1.5;

/** The p99 of a send beside 200 parallel logins, against that of an idle service. */
export const loginsVerdict = ({ idleMs, stormMs }: { idleMs: number; stormMs: number }): Verdict =>
  atMost('send beside 200 parallel logins / alone, p99', stormMs / idleMs, maxStorm);

const maxNeighbours = 2;
const minDeliveries = 0.5;

/** What bad endpoints do to healthy ones. */
export const isolationVerdicts = (figures: IsolationFigures): Verdict[] => [
  atMost(
    'webhooks beside 150 dead or slow endpoints / alone, p99',
    figures.besideBadMs / figures.aloneMs,
    maxNeighbours,
  ),
  atMost(
    'webhooks while 20 of 180 endpoints die / alone, p99',
    figures.whileDyingMs / figures.aloneMs,
    maxNeighbours,
  ),
];

/** What a delivery costs. */
export const deliveriesVerdict = (figures: DeliveryFigures): Verdict =>
  atLeast(
    'deliveries per CPU second / bare loop',
    figures.perCpuSecond / figures.barePerCpuSecond,
    minDeliveries,
  );

/** Memory of each process of the product: its most, and its growth where there were enough cycles. */
export const memoryVerdicts = (memory: Record<string, MemoryFigures>): Verdict[] =>
  Object.entries(memory).flatMap(([name, { maxMb, growth }]) => [
    { ...atMost(`${name}, most memory in MB`, maxMb, maxMemoryMb), target: `< ${maxMemoryMb}` },
    ...(growth === undefined ? [] : [atMost(`${name}, memory, growth`, growth, maxGrowth)]),
  ]);

/** More than this share of the machine in other hands and the figures are about them, too. */
const maxOthers = 0.05;

/** What to know when reading the figures. `cores` is how many the machine has. */
export const notesOn = (figures: readonly OperationFigures[], cores: number): string[] => {
  const disturbed = figures.filter(({ otherCores }) => otherCores > cores * maxOthers);
  if (disturbed.length === 0) return [];
  const shares = disturbed.map(
    ({ operation, otherCores }) => `${operation} ${Math.round((otherCores / cores) * 100)} %`,
  );
  return [`other processes used the machine as well: ${shares.join(', ')} of its CPU.`];
};

/** Whether a run says anything: every answer was 200, and every one that promises a message had one. */
export const soundness = (figures: readonly OperationFigures[]): string[] =>
  figures.flatMap(({ operation, statuses, samples, answered, accepted }) => {
    const wrong = Object.entries(statuses).filter(([status]) => status !== '200');
    const counted = wrong.map(([status, count]) => `${count} × ${status}`).join(', ');
    return [
      ...(wrong.length > 0 ? [`${operation}: answers other than 200: ${counted}`] : []),
      ...samples.map((sample) => `${operation}: ${sample}`),
      ...(answered === accepted
        ? []
        : [`${operation}: ${answered} answers say sent, the provider took ${accepted} messages`]),
    ];
  });
