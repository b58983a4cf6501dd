// The attack runner: which attacks run, what the table shows, when the exit code is 1.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import test from 'ava';
import type { Attack, Figure, RunningStack } from './attack.ts';
import { chooseAttacks, exitCodeOf, runAttacks, type Surroundings, tableOf } from './run.ts';

const stack: RunningStack = {
  api: 'http://127.0.0.1:1',
  ops: 'http://127.0.0.1:2',
  sim: 'http://127.0.0.1:3',
  ops_token: 'token',
  account: { email: 'demo@tessera.example', password: 'password' },
  keys: { live: 'live', test: 'test' },
  pids: { api: 11, mysql: null },
};

const figure = (change: Partial<Figure> = {}): Figure => {
  const held: Figure = { what: 'sends', value: '3', bound: 'at most 5', holds: true };
  return Object.assign(held, change);
};

const attack = (name: string, run: Attack['run']): Attack => ({ name, about: 'tries', run });

const surroundings = (running: readonly number[], said: string[] = []): Surroundings => ({
  readStack: () => stack,
  untilAnswering: () => Promise.resolve(),
  isRunning: (pid) => running.includes(pid),
  say: (line) => said.push(line),
});

test('every attack has a figure of its own and one for the processes that died', async (t) => {
  const said: string[] = [];
  const attacks = [attack('one', () => Promise.resolve([figure()]))];
  const outcomes = await runAttacks(attacks, surroundings([11], said));
  t.deepEqual(
    outcomes[0]?.figures.map(({ what, holds }) => [what, holds]),
    [
      ['sends', true],
      ['processes that died', true],
    ],
  );
  t.is(exitCodeOf(outcomes), 0);
  t.is(said[0], 'one: tries');
});

test('a process of the stack that died is a figure that does not hold', async (t) => {
  const attacks = [attack('one', () => Promise.resolve([figure()]))];
  const outcomes = await runAttacks(attacks, surroundings([]));
  t.like(outcomes[0]?.figures[1], { value: 'api', holds: false });
  t.is(exitCodeOf(outcomes), 1);
});

test('an attack that throws is a figure that does not hold, and the next one runs', async (t) => {
  const attacks = [
    attack('one', () => Promise.reject(new Error('404 of /v1/new'))),
    attack('two', () => Promise.resolve([figure()])),
  ];
  const outcomes = await runAttacks(attacks, surroundings([11]));
  t.like(outcomes[0]?.figures[0], { value: '404 of /v1/new', holds: false });
  t.true(outcomes[1]?.figures[0]?.holds);
  t.is(exitCodeOf(outcomes), 1);
});

test('one figure that does not hold, or none at all, is exit code 1', (t) => {
  t.is(exitCodeOf([{ attack: 'one', figures: [figure(), figure({ holds: false })] }]), 1);
  t.is(exitCodeOf([{ attack: 'one', figures: [figure()] }]), 0);
  t.is(exitCodeOf([]), 1);
});

test('the table shows a row a figure in columns, and says NO beside what does not hold', (t) => {
  const figures = [figure(), figure({ what: 'heap', value: '900 MB', holds: false })];
  t.is(
    tableOf([{ attack: 'flood', figures }]),
    [
      'attack   figure   value    bound       holds',
      'flood    sends    3        at most 5   yes',
      'flood    heap     900 MB   at most 5   NO',
    ].join('\n'),
  );
});

test('--only chooses by name, in the order of the table, and refuses an unknown name', (t) => {
  const all = ['one', 'two', 'three'].map((name) => attack(name, () => Promise.resolve([])));
  const chosen = (only?: string) => chooseAttacks(all, only).map(({ name }) => name);
  t.deepEqual(chosen(), ['one', 'two', 'three']);
  t.deepEqual(chosen('three, one'), ['one', 'three']);
  t.throws(() => chosen('four'), { message: '--only takes one, two, three, not "four".' });
});

test('without a running stack the command says so and how to start one', (t) => {
  const path = join(import.meta.dirname, 'missing', 'stack.json');
  const main = join(import.meta.dirname, 'main.ts');
  const { status, stderr } = spawnSync(process.execPath, [main, '--stack', path], {
    encoding: 'utf8',
  });
  t.is(status, 2);
  t.is(stderr, `No stack runs here: ${path} does not exist. Run npm start first.\n`);
});
