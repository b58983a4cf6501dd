// Whom a piece of news is about, as far as processes tell it apart: one account's news leave what is remembered of most
// others as it is.

/** News about everybody: prices, switches, and whatever names no account. */
export const everybody = 1;

const firstOfAccounts = 2;
const accountShards = 62;

/** The shard of an account, or that of everybody. The end of an id of version 7 is random (RFC 9562 section 5.7). */
export const shardOf = (accountId?: string): number =>
  accountId === undefined
    ? everybody
    : firstOfAccounts + (Number.parseInt(accountId.slice(-4), 16) % accountShards);
