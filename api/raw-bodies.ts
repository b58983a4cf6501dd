// Bodies that are read before anybody is known to be entitled to them: bounded each, and all together.
import type { IncomingMessage } from 'node:http';
import { fail, invalid, type ServiceError } from '../lib/kernel/errors.ts';

export type RawBodies = {
  /**
   * Reads a body of at most `limit` bytes and hands it to `use`; it counts until `use` has ended.
   * @throws PAYLOAD_TOO_LARGE; SERVICE_UNAVAILABLE when it had to give way to others; VALIDATION_ERROR when it broke off
   */
  read<T>(request: IncomingMessage, limit: number, use: (body: Buffer) => Promise<T>): Promise<T>;
};

/** Five of the largest calls that Meta makes. */
const defaultMaxBytes = 16 * 1024 * 1024;
/** What a piece of a body takes beside its bytes: else many tiny ones would not count. */
const pieceBytes = 256;
const retrySeconds = 5;

type Reading = { held: number; stop(error: ServiceError): void };

/** What all bodies hold together; where it is too much, the one that holds most gives way. */
const createBudget = (maxBytes: number) => {
  const reading = new Set<Reading>();
  let total = 0;
  const largest = (): Reading | undefined => {
    let found: Reading | undefined;
    for (const each of reading) if (found === undefined || each.held > found.held) found = each;
    return found;
  };
  return {
    reading,
    give: (bytes: number): void => {
      total -= bytes;
    },
    take: (body: Reading, bytes: number): void => {
      body.held += bytes;
      total += bytes;
      // Bodies in use are complete and stay; the one that grows here is always there to give way.
      while (total > maxBytes) {
        const victim = largest();
        if (victim === undefined) return;
        victim.stop(fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }));
      }
    },
  };
};

type Budget = ReturnType<typeof createBudget>;
type Complete = { body: Buffer; held: number };

const collect = (request: IncomingMessage, limit: number, budget: Budget): Promise<Complete> =>
  new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const end = (): void => {
      budget.reading.delete(body);
      request.off('data', onData).off('end', onEnd).off('close', onBroken).off('error', onBroken);
    };
    const stop = (error: ServiceError): void => {
      end();
      pieces.length = 0;
      budget.give(body.held);
      // What still comes is passed over; the time a request has to arrive ends it.
      request.on('error', () => undefined).resume();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      size += piece.length;
      pieces.push(piece);
      if (size > limit) stop(fail('PAYLOAD_TOO_LARGE'));
      else budget.take(body, piece.length + pieceBytes);
    };
    const onEnd = (): void => {
      end();
      resolve({ body: Buffer.concat(pieces, size), held: body.held });
    };
    const onBroken = (): void => stop(invalid({ field: 'body', issue: 'must arrive as a whole' }));
    const body: Reading = { held: 0, stop };
    budget.reading.add(body);
    if (Number(request.headers['content-length'] ?? 0) > limit)
      return stop(fail('PAYLOAD_TOO_LARGE'));
    if (request.destroyed) return onBroken();
    request.on('data', onData).on('end', onEnd).on('close', onBroken).on('error', onBroken);
  });

/** The raw bodies of a process, which hold at most `maxBytes` together (default 16 MiB). */
export const createRawBodies = (maxBytes: number = defaultMaxBytes): RawBodies => {
  const budget = createBudget(maxBytes);
  return {
    read: async (request, limit, use) => {
      const { body, held } = await collect(request, limit, budget);
      try {
        return await use(body);
      } finally {
        budget.give(held);
      }
    },
  };
};
