// The result as text for people: aligned columns, units, and a mark at each target.
import type { Result } from './result.ts';
import type { OperationFigures } from './summary.ts';
import type { Verdict } from './targets.ts';

type Column = { title: string; left?: boolean };

const align = (columns: readonly Column[], rows: readonly string[][]): string[] => {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        return columns[index]?.left ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('   ')
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...rows.map(line)];
};

const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
const fixed = (value: number | undefined, digits: number): string =>
  value === undefined ? '–' : value.toFixed(digits);
const countsOf = (statuses: Record<string, number>): string =>
  Object.entries(statuses)
    .map(([status, count]) => `${whole(count)} × ${status}`)
    .join(', ');

const speedTable = (operations: readonly OperationFigures[]): string[] =>
  align(
    [
      { title: 'operation', left: true },
      ...['requests/s', 'p50 ms', 'p99 ms', 'max ms', 'settled after ms'].map((title) => ({
        title,
      })),
      { title: 'requests/s by round', left: true },
      { title: 'answers', left: true },
    ],
    operations.map((one) => [
      one.operation,
      whole(one.throughput),
      ...[one.p50Ms, one.p99Ms, one.maxMs].map((ms) => fixed(ms, 1)),
      whole(one.drainedMs),
      one.rounds.map(whole).join(' '),
      countsOf(one.statuses),
    ]),
  );

const cpuTable = (operations: readonly OperationFigures[]): string[] => {
  const names = [...new Set(operations.flatMap(({ cpuMs }) => Object.keys(cpuMs)))];
  const total = ({ cpuMs }: OperationFigures) =>
    Object.values(cpuMs).reduce((sum, ms) => sum + ms, 0);
  return align(
    [
      { title: 'CPU ms per request', left: true },
      ...operations.map(({ operation }) => ({ title: operation })),
    ],
    [
      ...names.map((name) => [name, ...operations.map(({ cpuMs }) => fixed(cpuMs[name] ?? 0, 3))]),
      ['sum', ...operations.map((one) => fixed(total(one), 3))],
      ['cores used by others', ...operations.map(({ otherCores }) => fixed(otherCores, 2))],
    ],
  );
};

const memoryTable = ({ memory }: Result): string[] =>
  align(
    [
      { title: 'memory', left: true },
      ...['start MB', 'most MB', 'last cycle / before', 'MB per minute'].map((title) => ({
        title,
      })),
    ],
    Object.entries(memory).map(([name, { startMb, maxMb, growth, slopeMbPerMinute }]) => [
      name,
      ...[fixed(startMb, 0), fixed(maxMb, 0), fixed(growth, 2), fixed(slopeMbPerMinute, 1)],
    ]),
  );

const verdictTable = (verdicts: readonly Verdict[]): string[] =>
  align(
    [
      { title: 'target', left: true },
      { title: 'measured' },
      { title: 'wanted', left: true },
      { title: '', left: true },
    ],
    verdicts.map(({ name, value, target, met }) => [
      name,
      fixed(value, value >= 10 ? 0 : 2),
      target,
      met ? '✓' : '✗',
    ]),
  );

const describeRun = ({ machine, engines, options }: Result): string[] => [
  `${options.cycles} × ${options.seconds} s each after ${options.warmupSeconds} s, alternating; ${options.connections} connections, ${options.accounts} accounts, receipts ${options.receipts ? 'on' : 'off'}, log level info.`,
  `${machine.cpus} × ${machine.model}, ${machine.memoryGb} GB, Node ${machine.node}; RabbitMQ ${engines.rabbitmq}, ${engines.mysql}, Redis ${engines.redis}.`,
];

/** The whole page. */
export const printResult = (result: Result): string =>
  [
    '',
    ...describeRun(result),
    '',
    ...speedTable(result.operations),
    '',
    ...cpuTable(result.operations),
    '',
    ...memoryTable(result),
    '',
    ...verdictTable(result.verdicts),
    '',
    ...result.notes.map((note) => `Note: ${note}`),
    ...(result.mistakes.length > 0
      ? ['✗ This run is not sound:', ...result.mistakes.map((line) => `  ${line}`), '']
      : []),
  ].join('\n');
