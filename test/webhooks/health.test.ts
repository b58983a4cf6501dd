// Endpoints as the worker learns them: windows, the breaker with its one probe, what is slow, and what a new address is.
import test from 'ava';
import { minute, second } from '../../lib/kernel/clock.ts';
import type { Endpoint } from '../../lib/webhooks/endpoint-store.ts';
import { createGate } from '../../lib/webhooks/gate.ts';
import type { Result, Ticket } from '../../lib/webhooks/health.ts';

const good: Result = {
  ...{ ok: true, ms: 20, timedOut: false, answered: true, hard: false, counts: true },
};
const bad: Result = { ...good, ok: false, hard: true };
const late: Result = { ...bad, answered: false, timedOut: true, ms: 15 * second };

const endpointOf = (accountId: string, more: Partial<Endpoint> = {}): Endpoint => ({
  ...{ accountId, url: `https://${accountId}.example/hook`, disabled: false, changedAt: 1 },
  ...{ failingSince: null, pausedUntil: null },
  secrets: { present: null, before: null, beforeUntil: 0 },
  ...more,
});

const setUp = () => {
  let now = 1_000_000;
  const gate = createGate({ now: () => now });
  const take = (endpoint: Endpoint, urgent = false): Ticket => {
    const ticket = gate.admit(endpoint, urgent);
    if (typeof ticket === 'string') throw new Error(`refused: ${ticket}`);
    return ticket;
  };
  /** Takes all the room there is. */
  const fill = (endpoint: Endpoint): Ticket[] => {
    const tickets: Ticket[] = [];
    for (;;) {
      const ticket = gate.admit(endpoint, false);
      if (typeof ticket === 'string') return tickets;
      tickets.push(ticket);
    }
  };
  const once = (endpoint: Endpoint, result: Result) => gate.end(endpoint, take(endpoint), result);
  const pass = (ms: number) => {
    now += ms;
  };
  return { gate, take, fill, once, pass, now: () => now };
};

test('a window begins at one, grows with each success up to 25, and is halved by a failure', (t) => {
  const { gate, fill, once } = setUp();
  const endpoint = endpointOf('a');
  t.is(fill(endpoint).length, 1);
  const other = endpointOf('b');
  for (let n = 0; n < 40; n++) once(other, good);
  const tickets = fill(other);
  t.is(tickets.length, 25);
  const [first] = tickets;
  if (first) gate.end(other, first, bad);
  t.is(gate.admit(other, false), 'later', '24 are under way, 12 would be allowed');
});

test('five failures open the breaker for 30 s; behind it goes one probe, and each that fails doubles the pause', (t) => {
  const { gate, take, fill, once, pass } = setUp();
  const endpoint = endpointOf('a');
  for (let n = 0; n < 20; n++) once(endpoint, good);
  const tickets = fill(endpoint);
  t.true(tickets.length > 8);
  for (const ticket of tickets) gate.end(endpoint, ticket, bad);
  t.is(gate.admit(endpoint, false), 'closed');
  pass(30 * second - 1);
  t.is(gate.admit(endpoint, false), 'closed', 'what was under way when it opened doubles nothing');
  pass(1);
  for (const pause of [60, 120, 240, 480, 600, 600]) {
    const probe = take(endpoint);
    t.is(gate.admit(endpoint, false), 'closed', 'one probe, not two');
    gate.end(endpoint, probe, bad);
    pass(pause * second - 1);
    t.is(gate.admit(endpoint, false), 'closed', `${pause} s`);
    pass(1);
  }
  once(endpoint, good);
  t.is(fill(endpoint).length, 1, 'closed again, from a window of one');
});

test('half of the last twenty failing opens it too', (t) => {
  const { gate, once } = setUp();
  const endpoint = endpointOf('a');
  for (let n = 0; n < 9; n++) {
    once(endpoint, good);
    once(endpoint, bad);
  }
  once(endpoint, good);
  t.true(gate.room(endpoint) > 0);
  once(endpoint, bad);
  t.is(gate.admit(endpoint, false), 'closed');
});

test('a test may pass an open breaker, heals it when it arrives, and never harms', (t) => {
  const { gate, once, take, fill } = setUp();
  const endpoint = endpointOf('a');
  for (let n = 0; n < 5; n++) once(endpoint, bad);
  t.is(gate.admit(endpoint, false), 'closed');
  gate.end(endpoint, take(endpoint, true), { ...bad, counts: false });
  t.is(gate.admit(endpoint, false), 'closed');
  gate.end(endpoint, take(endpoint, true), { ...good, counts: false });
  t.is(fill(endpoint).length, 1);
  const fresh = endpointOf('b');
  for (let n = 0; n < 9; n++) gate.end(fresh, take(fresh, true), { ...bad, counts: false });
  t.is(fill(fresh).length, 1, 'not opened by tests');
});

test('a new address begins anew, and old news of the former one change nothing', (t) => {
  const { gate, once, take, fill, now } = setUp();
  const endpoint = endpointOf('a');
  const running = take(endpoint);
  gate.end(endpoint, running, bad);
  for (let n = 0; n < 4; n++) once(endpoint, bad);
  t.is(gate.admit(endpoint, false), 'closed');
  const again = { ...endpoint, changedAt: 2 };
  t.is(fill(again).length, 1);
  t.is(gate.admit(endpoint, false), 'later', 'as it was read before counts no more');
  gate.pause(endpoint, now() + minute);
  t.is(gate.admit(again, false), 'later', 'what the former one asked for is not for the new one');
});

test('an endpoint that asked for time gets it as a whole, wherever that was learnt', (t) => {
  const { gate, pass, now } = setUp();
  const endpoint = endpointOf('a');
  gate.pause(endpoint, now() + minute);
  t.is(gate.admit(endpoint, true), 'closed');
  pass(minute);
  t.not(gate.admit(endpoint, false), 'closed');
  const other = endpointOf('b', { pausedUntil: now() + minute });
  t.is(gate.admit(other, false), 'closed');
});

test('an endpoint at which something hangs gets nothing more until that has ended', (t) => {
  const { gate, once, fill, take, pass } = setUp();
  const endpoint = endpointOf('a');
  for (let n = 0; n < 30; n++) once(endpoint, good);
  const hanging = take(endpoint);
  pass(1_001);
  t.is(fill(endpoint).length, 0);
  gate.end(endpoint, hanging, { ...good, ms: 1_100 });
  t.true(fill(endpoint).length > 0);
});

test('slow endpoints share a quarter of the slots, unknown ones a half; proven ones go past them', (t) => {
  const { gate, fill, once } = setUp();
  const proven = endpointOf('proven');
  for (let n = 0; n < 30; n++) once(proven, good);
  const taken = (prefix: string, more: Partial<Endpoint>) =>
    Array.from({ length: 1_500 }, (_, n) => fill(endpointOf(`${prefix}${n}`, more)).length).reduce(
      (sum, count) => sum + count,
      0,
    );
  t.is(taken('new', {}), 512);
  t.is(taken('slow', { failingSince: 1 }), 256);
  t.is(fill(proven).length, 25);
  t.is(gate.admit(endpointOf('one-more'), false), 'full');
});

test('hanging paths of an origin leave room for its others; a dead origin is asked less', (t) => {
  const { gate, once, take, fill } = setUp();
  const at = (name: string, more: Partial<Endpoint> = {}) =>
    endpointOf(name, { url: `https://shared.example/${name}`, ...more });
  const healthy = at('healthy');
  for (let n = 0; n < 30; n++) once(healthy, good);
  for (let n = 0; n < 400; n++) fill(at(`dead${n}`));
  t.is(fill(healthy).length, 25);
  const gone = (n: number) => endpointOf(`gone${n}`, { url: `https://gone.example/${n}` });
  for (let n = 0; n < 5; n++) gate.end(gone(n), take(gone(n)), late);
  const left = Array.from({ length: 200 }, (_, n) => fill(gone(100 + n)).length);
  t.is(left.filter((count) => count > 0).length, 3, 'three quarters of four');
});

type Happening = { at: number; run(): void };

/** Healthy endpoints at 200 events a second beside dead ones at 100, for a minute; waits of the healthy ones in ms. */
const simulate = (dead: number): number[] => {
  let now = 0;
  const gate = createGate({ now: () => now });
  const agenda: Happening[] = [];
  let next = 0;
  const at = (time: number, run: () => void): void => {
    // Behind the last that is no later, found by halving: the agenda has thousands of lines.
    let [from, to] = [next, agenda.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((agenda[middle]?.at ?? 0) <= time) from = middle + 1;
      else to = middle;
    }
    agenda.splice(from, 0, { at: time, run });
  };
  const waits: number[] = [];
  const queues = new Map<string, number[]>();
  const advance = (endpoint: Endpoint, result: Result) => {
    const queue = queues.get(endpoint.accountId) ?? [];
    queues.set(endpoint.accountId, queue);
    while (queue.length > 0) {
      const ticket = gate.admit(endpoint, false);
      if (typeof ticket === 'string') break;
      const since = queue.shift() ?? now;
      if (result.ok) waits.push(now - since);
      at(now + result.ms, () => {
        gate.end(endpoint, ticket, result);
        advance(endpoint, result);
      });
    }
  };
  const arrive = (name: string, result: Result) => () => {
    const endpoint = endpointOf(name);
    queues.set(name, [...(queues.get(name) ?? []), now]);
    advance(endpoint, result);
  };
  for (let n = 0; n < 12_000; n++) {
    at(n * 5, arrive(`ok${n % 180}`, good));
    if (dead > 0 && n % 2 === 0) at(n * 5, arrive(`dead${(n / 2) % dead}`, late));
  }
  while (next < agenda.length && now < minute) {
    const happening = agenda[next++];
    now = happening?.at ?? now;
    happening?.run();
  }
  return waits.sort((one, other) => one - other);
};

test('with 150 endpoints dead beside them, healthy ones do not wait', (t) => {
  for (const dead of [0, 60, 150, 600]) {
    const waits = simulate(dead);
    t.true(waits.length > 11_900, `${dead} dead: ${waits.length} went out`);
    t.is(waits[Math.floor(waits.length * 0.99)], 0, `${dead} dead`);
  }
});
