// Every request body of a process is read here: so many at once, and so many bytes together.
import type { IncomingMessage } from 'node:http';
import { fail, invalid, type ServiceError } from '../lib/kernel/errors.ts';
import { type BodyLimit, type BodyPlaces, createBodyPlaces } from './body-places.ts';

export type BodyLimits = {
  /** Bytes of all bodies together. */
  bytes: number;
  /** Bodies that are waited for at once. */
  atOnce: number;
  /** Of those, bodies of strangers from one source. */
  perSource: number;
};

/** Who sends a body, and how long it may be. */
export type Sending = {
  /** Bytes. */
  limit: number;
  /** The caller showed a valid credential. All others share `strangersShare` of the limits. */
  trusted: boolean;
  /** Where it comes from; asked only for a body that is still on its way. */
  source(): string;
};

export type Bodies = {
  /**
   * Reads a body and hands it to `use`; its bytes count until `use` has ended.
   * @throws PAYLOAD_TOO_LARGE; SERVICE_UNAVAILABLE when it gave way to others; VALIDATION_ERROR when it broke off
   */
  read<T>(
    request: IncomingMessage,
    sending: Sending,
    use: (body: Buffer) => T | Promise<T>,
  ): Promise<T>;
};

/** The part of all limits that callers without a valid credential share. */
const strangersShare = 1 / 4;
/** What a piece of a body takes beside its bytes: otherwise many tiny ones would not count. */
const pieceBytes = 256;
const retrySeconds = 5;

type Reading = {
  trusted: boolean;
  source: string;
  held: number;
  /** When its first byte was waited for, ms. */
  since: number;
  giveWay(): void;
};

/**
 * What all bodies hold together. Above the limit the body gives way that holds most for longest (bytes × time): a
 * small body, and one that comes at once, goes through beside slow large ones.
 */
const createBudget = (bytes: number, now: () => number, onRefused: () => void) => {
  const max = { all: bytes, strangers: bytes * strangersShare };
  const held = { all: 0, strangers: 0 };
  const reading = new Set<Reading>();
  const costliest = (among: (body: Reading) => boolean): Reading | undefined => {
    const at = now();
    let found: Reading | undefined;
    let most = -1;
    for (const body of reading) {
      const cost = body.held * (at - body.since + 1);
      if (cost > most && among(body)) [found, most] = [body, cost];
    }
    return found;
  };
  const add = (trusted: boolean, count: number): void => {
    held.all += count;
    if (!trusted) held.strangers += count;
  };
  const give = ({ trusted, held: count }: Reading): void => add(trusted, -count);
  const stop = (victim: Reading | undefined): boolean => {
    if (victim === undefined) return false;
    onRefused();
    victim.giveWay();
    return true;
  };
  return {
    reading,
    give,
    take: (body: Reading, count: number): void => {
      body.held += count;
      add(body.trusted, count);
      // Bodies in use are complete and stay; the one that grows here is always there to give way.
      while (held.strangers > max.strangers && stop(costliest(({ trusted }) => !trusted)));
      while (held.all > max.all && stop(costliest(() => true)));
    },
  };
};

type Budget = ReturnType<typeof createBudget>;
type Complete = { body: Buffer; reading: Reading };

const collect = (
  request: IncomingMessage,
  sending: Sending,
  { budget, places, since }: { budget: Budget; places: BodyPlaces<Reading>; since: number },
): Promise<Complete> =>
  new Promise((resolve, reject) => {
    const { limit, trusted } = sending;
    const pieces: Buffer[] = [];
    let size = 0;
    const end = (): void => {
      clearImmediate(entering);
      budget.reading.delete(reading);
      places.leave(reading);
      request.off('data', onData).off('end', onEnd).off('close', onBroken).off('error', onBroken);
    };
    const stop = (error: ServiceError): void => {
      end();
      pieces.length = 0;
      budget.give(reading);
      // What still comes is passed over, until the connection is closed behind the answer (serve.ts).
      request.on('error', () => undefined).resume();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      size += piece.length;
      pieces.push(piece);
      if (size > limit) stop(fail('PAYLOAD_TOO_LARGE'));
      else budget.take(reading, piece.length + pieceBytes);
    };
    const onEnd = (): void => {
      end();
      resolve({ body: Buffer.concat(pieces, size), reading });
    };
    const onBroken = (): void => stop(invalid({ field: 'body', issue: 'must arrive as a whole' }));
    const giveWay = (): void =>
      stop(fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }));
    const reading: Reading = { trusted, source: '', held: 0, since, giveWay };
    // A body that came with its head is complete by then, and takes no place.
    const entering = setImmediate(() => {
      reading.source = sending.source();
      places.enter(reading);
    });
    budget.reading.add(reading);
    if (Number(request.headers['content-length'] ?? 0) > limit)
      return stop(fail('PAYLOAD_TOO_LARGE'));
    if (request.destroyed) return onBroken();
    request.on('data', onData).on('end', onEnd).on('close', onBroken).on('error', onBroken);
  });

/**
 * The bodies of a process.
 * @param onRefused is told of each body that gives way at a limit
 * @param now a clock in ms
 */
export const createBodies = (
  { bytes, atOnce, perSource }: BodyLimits,
  onRefused: (limit: BodyLimit | 'body_bytes') => void,
  now: () => number = () => performance.now(),
): Bodies => {
  const budget = createBudget(bytes, now, () => onRefused('body_bytes'));
  const strangers = Math.max(1, Math.floor(atOnce * strangersShare));
  const places = createBodyPlaces<Reading>({ atOnce, strangers, perSource }, onRefused);
  return {
    read: async (request, sending, use) => {
      const { body, reading } = await collect(request, sending, { budget, places, since: now() });
      try {
        return await use(body);
      } finally {
        budget.give(reading);
      }
    },
  };
};
