// Lua scripts of Redis as typed functions.
import type { RedisClient } from './redis.ts';

export type ScriptDefinition = {
  /** Unique per client; two different scripts under one name are refused. */
  name: string;
  lua: string;
  /** Number of keys; left out when it varies from call to call. */
  keys?: number;
};

/** Calls a script: its keys, then its arguments. Throws RedisUnavailable. */
export type Script<Reply> = (
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<Reply>;

/**
 * Registers a Lua script on the client and returns it as a function (EVALSHA; the text is sent once per connection
 * and again when the server forgot it). `Reply` is what the script returns: integers as numbers, bulk as strings.
 */
export const defineScript = <Reply>(
  client: RedisClient,
  definition: ScriptDefinition,
): Script<Reply> => {
  const { name, lua, keys: count } = definition;
  const known = (client.scriptsSet as Record<string, { lua: string } | undefined>)[name];
  if (known === undefined && name in client) throw new TypeError(`script name ${name} is taken`);
  if (known !== undefined && known.lua !== lua) throw new TypeError(`two scripts named ${name}`);
  if (known === undefined) client.defineCommand(name, { lua });
  type Call = (keyCount: number, ...rest: (string | number)[]) => Promise<Reply>;
  const call = (client as unknown as Record<string, Call | undefined>)[name]?.bind(client);
  if (call === undefined) throw new TypeError(`script ${name} was not registered`);
  return (keys, args) => {
    if (count !== undefined && keys.length !== count) {
      throw new TypeError(`script ${name} takes ${count} keys, got ${keys.length}`);
    }
    return call(keys.length, ...keys, ...args);
  };
};

/**
 * Head of a script that needs the time: `now` in ms is ARGV[1] or, when that is empty, the server's clock; `text`
 * writes a large whole number, which newer servers would otherwise print as 1.7e+12.
 */
export const serverClockLua = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text(number) return string.format('%.0f', number) end
`;
