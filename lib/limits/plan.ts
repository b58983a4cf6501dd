// From a call to what the admission script needs: its rows, their Redis keys with Cluster tags, and the numbers.
import { exactUpTo, rowsFor, type Tier } from './rules.ts';
import type { AllowanceName, Group, LimitRow } from './table.ts';

export type AdmissionOperation = 'send' | 'deliver' | 'verify' | 'playground';

/** Whom a call counts for. */
export type Subject = {
  accountId: string;
  keyId: string;
  mode: 'live' | 'test';
  /** Opaque stand-in for the phone (its HMAC); part of Redis keys. */
  phoneKey: string;
  /** The source address, or its /64; only of calls without an account. */
  sourceKey?: string;
};

type ReportedRow = { name: AllowanceName; limit: number; windowMs: number };

/** The rows of one script call, and what does not depend on whom it counts for. */
type Template = {
  rows: LimitRow[];
  /** One row per distinct key. */
  keyed: LimitRow[];
  /** Key number, limit and window of each row. */
  args: number[];
  /** The account's allowances among the rows; always the last ones. */
  reported: ReportedRow[];
};

export type Plan = Omit<Template, 'keyed'> & { keys: string[] };

const tagOf = (group: Group, { accountId, mode, phoneKey, sourceKey }: Subject): string => {
  const space = mode === 'live' ? 'l' : 't';
  if (group === 'phone') return `{p:${space}:${phoneKey}}`;
  if (group === 'source') return `{i:${sourceKey ?? ''}}`;
  if (group === 'account') return `{a:${space}:${accountId}}`;
  return `{ap:${space}:${accountId}:${phoneKey}}`;
};

// A limit that outgrows the exact log is kept in another shape, so it needs another key.
const keyOf = (prefix: string, row: LimitRow, subject: Subject): string => {
  const key = `${prefix}lim:${tagOf(row.group, subject)}${row.key}`;
  if (row.name === 'credential') return key + subject.keyId;
  return row.limit > exactUpTo ? `${key}r` : key;
};

const templateOf = (rows: LimitRow[]): Template => {
  const keyed = rows.filter((row, index) => row.key !== rows[index - 1]?.key);
  const numberOf = (row: LimitRow) => keyed.findIndex(({ key }) => key === row.key) + 1;
  return {
    rows,
    keyed,
    args: rows.flatMap((row) => [numberOf(row), row.limit, row.windowMs]),
    reported: rows.flatMap(({ tiered, limit, windowMs }) =>
      tiered === undefined ? [] : [{ name: tiered, limit, windowMs }],
    ),
  };
};

const groupOrder: readonly Group[] = ['accountPhone', 'phone', 'source', 'account'];

const templatesOf = (rows: LimitRow[], split: boolean): Template[] =>
  split
    ? groupOrder
        .map((group) => rows.filter((row) => row.group === group))
        .filter((group) => group.length > 0)
        .map(templateOf)
    : [templateOf(rows)];

/** Account rows only: what the usage document reads. */
type PlannedOperation = AdmissionOperation | 'usage';

const rowsOf = (operation: PlannedOperation, tier: Tier): LimitRow[] =>
  operation === 'usage'
    ? rowsFor('send', tier).filter((row) => row.tiered !== undefined)
    : rowsFor(operation, tier);

// Tiers are few; a Map that met this many distinct ones is only emptied, never wrong.
const rememberedMax = 1_000;

/**
 * Makes plans. `split` asks for one plan per Cluster slot (in the order in which they are to be taken) instead of one
 * for everything.
 */
export const createPlanner = (prefix: string, split: boolean) => {
  if (/[{}]/.test(prefix)) throw new TypeError('a key prefix must not contain braces');
  const remembered = new Map<string, Template[]>();

  const templates = (operation: PlannedOperation, tier: Tier): Template[] => {
    const id = `${operation}/${tier.burst}/${tier.sustained}/${tier.hourly}`;
    const known = remembered.get(id);
    if (known !== undefined) return known;
    const made = templatesOf(rowsOf(operation, tier), split);
    if (remembered.size >= rememberedMax) remembered.clear();
    remembered.set(id, made);
    return made;
  };

  return (operation: PlannedOperation, tier: Tier, subject: Subject): Plan[] =>
    templates(operation, tier).map(({ rows, keyed, args, reported }) => ({
      rows,
      args,
      reported,
      keys: keyed.map((row) => keyOf(prefix, row, subject)),
    }));
};
