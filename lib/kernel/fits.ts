// A quick check compiled from a Joi schema: it says yes only where Joi would, and leaves all other verdicts to Joi. For
// messages between our own processes, thousands a second, where Joi takes longer than the work.
import type Joi from 'joi';

type Check = (value: unknown) => boolean;
type Rule = { name: string; args?: Record<string, unknown> };
type Described = Joi.Description & { rules?: Rule[]; allow?: unknown[]; items?: Described[] };

const never: Check = () => false;

const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const hex = /^[0-9a-f]+$/;

type RuleCheck = (value: never, args: Record<string, unknown>) => boolean;

const rulesOf: Record<string, Record<string, RuleCheck>> = {
  string: {
    guid: (value: string) => guid.test(value),
    hex: (value: string) => hex.test(value),
    length: (value: string, { limit }) => value.length === limit,
    min: (value: string, { limit }) => value.length >= Number(limit),
    max: (value: string, { limit }) => value.length <= Number(limit),
  },
  number: {
    integer: (value: number) => Number.isSafeInteger(value),
    min: (value: number, { limit }) => value >= Number(limit),
    max: (value: number, { limit }) => value <= Number(limit),
  },
  array: {
    min: (value: unknown[], { limit }) => value.length >= Number(limit),
    max: (value: unknown[], { limit }) => value.length <= Number(limit),
  },
};

/** All rules of a type together; undefined when there is one that is not known here. */
const compileRules = ({ type = '', rules = [] }: Described): Check | undefined => {
  const known = rulesOf[type] ?? {};
  const checks = rules.map(({ name, args = {} }) => {
    const rule = known[name];
    return rule && ((value: unknown) => rule(value as never, args));
  });
  if (checks.some((check) => check === undefined)) return undefined;
  return every(checks as Check[]);
};

/** A loop, which leaves nothing behind: this runs for every field of every message. */
const every =
  (checks: readonly Check[]): Check =>
  (value) => {
    for (const check of checks) if (!check(value)) return false;
    return true;
  };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasOnly = (value: object, names: ReadonlySet<string>): boolean => {
  for (const name in value) if (!names.has(name)) return false;
  return true;
};

const compileObject = ({ keys, flags }: Described): Check => {
  if (!keys) return flags && 'unknown' in flags ? isObject : never;
  const members = Object.entries(keys as Record<string, Described>).map(([name, described]) => ({
    name,
    check: compile(described),
    required: isRequired(described),
  }));
  const names = new Set(members.map(({ name }) => name));
  return (value) => {
    if (!isObject(value) || !hasOnly(value, names)) return false;
    for (const { name, check, required } of members) {
      const member = value[name];
      if (member === undefined ? required : !check(member)) return false;
    }
    return true;
  };
};

const isRequired = ({ flags }: Described): boolean =>
  (flags as { presence?: string } | undefined)?.presence === 'required';

const compileArray = (described: Described): Check => {
  const [item, ...more] = described.items ?? [];
  if (!item || more.length > 0) return never;
  const check = compile(item);
  return (value) => Array.isArray(value) && value.every(check);
};

const bases: Record<string, (described: Described) => Check> = {
  string: () => (value) => typeof value === 'string' && value !== '',
  number: () => (value) => typeof value === 'number' && Number.isFinite(value),
  boolean: () => (value) => typeof value === 'boolean',
  object: compileObject,
  array: compileArray,
};

const knownFlags = new Set(['presence', 'only', 'unknown']);
const knownParts = new Set(['type', 'flags', 'allow', 'rules', 'keys', 'items', 'metas', 'notes']);

const compile = (described: Described): Check => {
  const flags = (described.flags ?? {}) as Record<string, unknown>;
  const foreign =
    Object.keys(flags).some((flag) => !knownFlags.has(flag)) ||
    Object.keys(described).some((part) => !knownParts.has(part));
  const rules = compileRules(described);
  const base = bases[described.type ?? ''];
  if (foreign || !rules || !base) return never;
  const allowed = new Set(described.allow);
  if (flags.only) return (value) => allowed.has(value);
  const fits = base(described);
  return (value) => allowed.has(value) || (fits(value) && rules(value));
};

/** A check that answers true only for values that the schema lets through as they are. */
export const compileFits = (schema: Joi.Schema): Check => compile(schema.describe() as Described);
