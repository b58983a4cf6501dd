// Where a Redis server is, and how to sign in there: read off its URL.
import type { RedisOptions } from 'ioredis';

export type RedisAddress = {
  host: string;
  port: number;
  db: number;
  login: Pick<RedisOptions, 'username' | 'password' | 'tls'>;
};

/**
 * Reads `redis[s]://[user:password@]host:port[/db]`. @throws TypeError for another protocol, or for what is no URL
 */
export const parseRedisAddress = (text: string): RedisAddress => {
  const url = new URL(text);
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new TypeError('a Redis address must start with redis:// or rediss://');
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 6379),
    db: Number(url.pathname.slice(1) || 0),
    login: {
      ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
      ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
      ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
    },
  };
};
