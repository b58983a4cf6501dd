// Lua scripts of Redis as typed functions.
import { createGrouper } from '../kernel/grouper.ts';
import { isReadOnly, type RedisClient, replyError } from './redis.ts';

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

type Args = (string | number)[];
type Call = { keys: readonly string[]; args: readonly (string | number)[] };
/** Whether the call was carried out, and its reply or its error. */
type Answer = [done: 0 | 1, reply: unknown];

/** The script for any number of calls, each with keys and arguments of its own; a failed one leaves the others be. */
const forMany = (lua: string): string => `
local function one(KEYS, ARGV)
${lua}
end
local replies, key, at = {}, 0, 1
for call = 1, tonumber(ARGV[1]) do
  local keys, args = {}, {}
  local keyCount, argCount = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  for i = 1, keyCount do keys[i] = KEYS[key + i] end
  for i = 1, argCount do args[i] = ARGV[at + 2 + i] end
  key, at = key + keyCount, at + 2 + argCount
  local done, reply = pcall(one, keys, args)
  if type(reply) == 'table' and reply.err then done, reply = false, reply.err end
  if not done then reply = tostring(reply) elseif reply == nil then reply = false end
  replies[call] = {done and 1 or 0, reply}
end
return replies`;

/** The keys of all calls; their number, and for each its counts and arguments. */
const together = (calls: readonly Call[]): { keys: string[]; args: Args } => ({
  keys: calls.flatMap(({ keys }) => keys),
  args: [calls.length, ...calls.flatMap(({ keys, args }) => [keys.length, args.length, ...args])],
});

/** Some milliseconds of the server; what waits beyond that waits for another answer, or another timeout. */
const mostAtOnce = 200;

type Run<Reply> = (keyCount: number, ...rest: Args) => Promise<Reply>;

const register = <Reply>(client: RedisClient, name: string, lua: string): Run<Reply> => {
  const known = (client.scriptsSet as Record<string, { lua: string } | undefined>)[name];
  if (known === undefined && name in client) throw new TypeError(`script name ${name} is taken`);
  if (known !== undefined && known.lua !== lua) throw new TypeError(`two scripts named ${name}`);
  if (known === undefined) client.defineCommand(name, { lua });
  const run = (client as unknown as Record<string, Run<Reply> | undefined>)[name]?.bind(client);
  if (run === undefined) throw new TypeError(`script ${name} was not registered`);
  return run;
};

/**
 * On a single server calls that are asked for in one turn of the event loop, or while an earlier one is under way,
 * travel as one: for both sides most of what a small script costs is the call.
 */
const gathered = <Reply>(client: RedisClient, name: string, lua: string): Script<Reply> => {
  const isDemotion = ([done, reply]: Answer): boolean => done === 0 && isReadOnly(String(reply));
  const run = register<Answer[]>(client, name, forMany(lua));
  // They are gathered here; in a pipeline they would wait again.
  const alone = client.options.autoPipeliningIgnoredCommands;
  if (!alone?.includes(name)) alone?.push(name);
  const group = createGrouper<Call, Answer>({
    ...{ maxSize: mostAtOnce, maxWaitMs: 0 },
    run: async (calls) => {
      const { keys, args } = together(calls);
      const answers = await run(keys.length, ...keys, ...args);
      // The client looks for this in plain replies alone (redis.ts, reconnectOnError).
      if (answers.some(isDemotion)) client.disconnect(true);
      return answers;
    },
  });
  return async (keys, args) => {
    const [done, reply] = await group.add({ keys, args });
    if (done === 1) return reply as Reply;
    throw replyError(String(reply));
  };
};

// Keys of different parties live on different nodes.
const single = <Reply>(client: RedisClient, name: string, lua: string): Script<Reply> => {
  const run = register<Reply>(client, name, lua);
  return (keys, args) => run(keys.length, ...keys, ...args);
};

/**
 * Registers a Lua script on the client and returns it as a function (EVALSHA; the text is sent once per connection
 * and again when the server forgot it). `Reply` is what the script returns: integers as numbers, bulk as strings.
 * Whoever needs a script before or after a plain command awaits the first of them: they may overtake each other.
 */
export const defineScript = <Reply>(
  client: RedisClient,
  { name, lua, keys: count }: ScriptDefinition,
): Script<Reply> => {
  const call = (client.isCluster ? single : gathered)<Reply>(client, name, lua);
  return (keys, args) => {
    if (count !== undefined && keys.length !== count) {
      throw new TypeError(`script ${name} takes ${count} keys, got ${keys.length}`);
    }
    return call(keys, args);
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
