// Reset codes that were sent, in Redis: a guess is judged here before it can count against the message.
import type { RedisClient } from '../infra/redis.ts';
import { hmacHex, type NamedKey } from '../kernel/secrets.ts';
import { codeLifeSeconds } from '../messages/rules.ts';

/** Until a channel takes the message, which its life begins with; whether it is still valid the message itself says. */
const sendingSeconds = 60;

/** `name` is the opaque name of an e-mail address. All throw RedisUnavailable. */
export type ResetCodes = {
  /** Notes a code that is about to be sent; earlier ones stay until their time is over. */
  keep(name: string, code: string): Promise<void>;
  /** Whether this code was sent to the owner of the address lately. */
  wasSent(name: string, code: string): Promise<boolean>;
  /** The code was used. */
  drop(name: string, code: string): Promise<void>;
};

/** Codes by their HMACs under the newest of `peppers`; those under older ones are still found. */
export const createResetCodes = (
  redis: RedisClient,
  prefix: string,
  peppers: readonly NamedKey[],
): ResetCodes => {
  const keysOf = (name: string, code: string): string[] =>
    peppers.map(({ key }) => `${prefix}reset_code:${hmacHex(key, `reset-code\n${name}\n${code}`)}`);
  return {
    keep: async (name, code) => {
      const [key] = keysOf(name, code);
      if (key) await redis.set(key, '1', 'EX', codeLifeSeconds + sendingSeconds);
    },
    // One by one: on a Cluster the keys stand on different nodes.
    wasSent: async (name, code) => {
      const found = await Promise.all(keysOf(name, code).map((key) => redis.exists(key)));
      return found.includes(1);
    },
    drop: async (name, code) => {
      await Promise.all(keysOf(name, code).map((key) => redis.del(key)));
    },
  };
};
