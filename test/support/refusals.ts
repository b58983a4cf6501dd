// What every refused request has in common: a 4xx in the envelope, and nothing changed anywhere.
import type { ExecutionContext } from 'ava';
import { changesBetween, type RedisKeys } from './redis-keys.ts';
import type { Stack } from './stack.ts';
import type { RawAnswer } from './wire.ts';

export type ErrorBody = {
  code: string;
  message: string;
  request_id: string;
  details?: { field: string; issue: string }[];
};

/** Reads the error of a 4xx and checks its envelope; `what` says which request it was. */
export const errorIn = (t: ExecutionContext, answer: RawAnswer, what: string): ErrorBody => {
  t.true(answer.status >= 400 && answer.status < 500, `${what}: ${answer.status} ${answer.body}`);
  t.regex(answer.headers.get('content-type') ?? '', /^application\/json/, what);
  const { error } = JSON.parse(answer.body) as { error: ErrorBody };
  t.is(typeof error.code, 'string', what);
  t.true(error.message.length > 0, what);
  t.is(error.request_id, answer.headers.get('x-request-id') ?? '', what);
  return error;
};

const rooms = ['lim:', 'idem:', 'm:', 'code:', 'link:'];

/** Runs `work` and checks that no limit, record, message or provider noticed it. */
export const withoutEffect = async (
  t: ExecutionContext,
  { stack, redis }: { stack: Stack; redis: RedisKeys },
  work: () => Promise<void>,
): Promise<void> => {
  const prefix = stack.config.keyPrefix;
  const providers = stack.sim.stats();
  const before = await redis.snapshot(prefix);
  await work();
  const changes = changesBetween(before, await redis.snapshot(prefix));
  t.deepEqual(
    changes
      .filter((change) => rooms.some((room) => change.includes(` ${prefix}${room}`)))
      // What an earlier test has sent may still be learning of its arrival.
      .filter((change) => !change.startsWith(`set ${prefix}m:`)),
    [],
  );
  t.deepEqual(stack.sim.stats(), providers);
};
