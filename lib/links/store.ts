// Links in Redis for their fifteen minutes, linked recipients and proven phones in MySQL.
import { type Database, type Transaction, withLockRetry } from '../infra/mysql.ts';
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';
import type { Mode, Origin } from '../messages/rules.ts';
import { linkLifeSeconds } from './rules.ts';

export type Recipient = { accountId: string; mode: Mode; phone: string };

/** A link as issued. */
export type Link = Recipient & { requestId: string };

const lifeMs = linkLifeSeconds * 1000;
/** How long a linked chat is remembered before MySQL is asked again. */
const chatCacheMs = 5 * 60 * 1000;
const unknownChat = '-';

// The first chat that presses Start owns the link; the same chat may press again.
const redeem = `
local link, owner = unpack(redis.call('HMGET', KEYS[1], 'link', 'chat'))
if not link then return nil end
if owner and owner ~= ARGV[1] then return nil end
redis.call('HSET', KEYS[1], 'chat', ARGV[1])
redis.call('HSETNX', KEYS[1], 'fresh', ARGV[2])
local done, fresh = unpack(redis.call('HMGET', KEYS[1], 'done', 'fresh'))
return {link, done or '0', fresh, redis.call('PTTL', KEYS[1])}`;

/** A code that could not be delivered: how it was made, and when it was asked for (ms). */
export type Attempt = { origin: Origin; at: number };

// A link may end while it is redeemed; a mark on it then would be one without an end.
const markDone = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'done', '1') end`;

/** `freshId` is the id of the message that its redemption may bring: the same each time it is redeemed. */
export type Redeemed = { link: Link; done: boolean; freshId: string; leftMs: number };

const linkTokens = (redis: RedisClient, prefix: string) => {
  const run = defineScript<[string, string, string, number] | null>(redis, {
    name: 'linkRedeem',
    lua: redeem,
    keys: 1,
  });
  const mark = defineScript<null>(redis, { name: 'linkDone', lua: markDone, keys: 1 });
  const tokenKey = (hash: string) => `${prefix}link:{${hash}}`;
  const chatKey = (chatId: number) => `${prefix}linkchat:{${chatId}}`;
  const attemptKey = (recipient: string) => `${prefix}attempt:{${recipient}}`;

  return {
    saveLink: async (hash: string, link: Link): Promise<void> => {
      const key = tokenKey(hash);
      await redis.multi().hset(key, 'link', JSON.stringify(link)).pexpire(key, lifeMs).exec();
    },

    /** Binds a link to the chat that pressed Start; undefined when it is unknown, expired or another chat's. */
    redeem: async (hash: string, chatId: number): Promise<Redeemed | undefined> => {
      const reply = await run([tokenKey(hash)], [chatId, newId()]);
      if (reply === null) return undefined;
      const [link, done, freshId, leftMs] = reply;
      return { link: JSON.parse(link) as Link, done: done === '1', freshId, leftMs };
    },

    /** The link this chat is to prove its phone for. */
    rememberChat: async (chatId: number, hash: string, forMs: number): Promise<void> => {
      await redis.set(chatKey(chatId), hash, 'PX', Math.max(forMs, 1));
    },
    pendingOf: (chatId: number): Promise<string | null> => redis.get(chatKey(chatId)),

    finish: async (hash: string, chatId: number): Promise<void> => {
      await mark([tokenKey(hash)], []);
      await redis.del(chatKey(chatId));
    },

    /** Remembers, for as long as a link may live, how a recipient's last code was made. */
    noteAttempt: async (recipient: string, { origin, at }: Attempt): Promise<void> => {
      await redis.set(attemptKey(recipient), `${origin} ${at}`, 'PX', lifeMs);
    },
    lastAttempt: async (recipient: string): Promise<Attempt | undefined> => {
      const [origin, at] = (await redis.get(attemptKey(recipient)))?.split(' ') ?? [];
      return origin === undefined ? undefined : { origin: origin as Origin, at: Number(at) };
    },
    /** What it asked for was sent. */
    forgetAttempt: async (recipient: string): Promise<void> => {
      await redis.del(attemptKey(recipient));
    },
  };
};

const linkedChats = (db: Database, redis: RedisClient, prefix: string) => {
  const cacheKey = (recipient: string) => `${prefix}chat:{${recipient}}`;
  const where = ({ accountId, mode, phone }: Recipient) => ({
    account_id: idBytes(accountId),
    mode,
    phone,
  });

  const remember = (recipientKey: string, chat: number | string) =>
    redis.set(cacheKey(recipientKey), chat, 'PX', chatCacheMs);

  /** Changes row and cache under the row's lock, so that both see the changes in the same order. */
  const changing = async <T>(
    recipientKey: string,
    change: (trx: Transaction) => Promise<T>,
  ): Promise<T> => {
    try {
      return await withLockRetry(() => db.transaction(change));
    } catch (error) {
      // Nobody knows what holds now; the next look asks MySQL.
      await redis.del(cacheKey(recipientKey)).catch(() => undefined);
      throw error;
    }
  };

  return {
    /** The chat linked for a recipient (`recipientKey` is its key); MySQL is asked on a miss. */
    chatOf: async (recipient: Recipient, recipientKey: string): Promise<number | undefined> => {
      const cached = await redis.get(cacheKey(recipientKey));
      if (cached !== null) return cached === unknownChat ? undefined : Number(cached);
      const row = await db<{ chat_id: number }>('telegram_links')
        .where(where(recipient))
        .first('chat_id');
      // Whoever changed it meanwhile has written what holds now: an older look does not replace it.
      const seen = row ? row.chat_id : unknownChat;
      await redis.set(cacheKey(recipientKey), seen, 'PX', chatCacheMs, 'NX');
      return row === undefined ? undefined : Number(row.chat_id);
    },

    link: (recipient: Recipient, recipientKey: string, chat: LinkedChat): Promise<void> =>
      changing(recipientKey, async (trx) => {
        await trx('telegram_links')
          .insert({
            ...where(recipient),
            chat_id: chat.chatId,
            proof: chat.proof,
            linked_at: chat.at,
          })
          .onConflict(['account_id', 'mode', 'phone'])
          .merge(['chat_id', 'proof', 'linked_at']);
        await remember(recipientKey, chat.chatId);
      }),

    /** Answers false when nothing was linked. */
    unlink: async (recipient: Recipient, recipientKey: string): Promise<boolean> => {
      const before = await redis.get(cacheKey(recipientKey));
      const gone = await changing(recipientKey, async (trx) => {
        const count = await trx('telegram_links').where(where(recipient)).delete();
        if (count > 0) await remember(recipientKey, unknownChat);
        return count > 0;
      });
      // Known before, and not to MySQL: a link whose end got lost.
      const stray = !gone && before !== null && before !== unknownChat;
      if (stray) await redis.del(cacheKey(recipientKey));
      return gone;
    },

    /** All recipients a chat stands for. */
    recipientsOf: async (chatId: number): Promise<Recipient[]> => {
      const rows = await db('telegram_links').where({ chat_id: chatId });
      return rows.map((row) => ({
        accountId: idText(row.account_id as Buffer),
        mode: row.mode as Mode,
        phone: String(row.phone),
      }));
    },
  };
};

/** Which chat has shown which number, and when. */
const provenPhones = (db: Database) => ({
  /** Whether the chat has shown the number since `since` (ms). */
  hasProof: async (chatId: number, phone: string, since: number): Promise<boolean> =>
    (await db('telegram_proofs')
      .where({ chat_id: chatId, phone })
      .where('proven_at', '>=', since)
      .first()) !== undefined,

  saveProof: async (chatId: number, phone: string, at: number): Promise<void> => {
    await db('telegram_proofs')
      .insert({ chat_id: chatId, phone, proven_at: at })
      .onConflict(['chat_id', 'phone'])
      .merge(['proven_at']);
  },
});

export type LinkedChat = { chatId: number; proof: 'contact' | 'tap'; at: number };

export type LinkStore = ReturnType<typeof createLinkStore>;

export const createLinkStore = (deps: { db: Database; redis: RedisClient; prefix: string }) => ({
  ...linkTokens(deps.redis, deps.prefix),
  ...linkedChats(deps.db, deps.redis, deps.prefix),
  ...provenPhones(deps.db),
});
