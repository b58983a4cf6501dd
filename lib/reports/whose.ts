// Which accounts a statement over rollups is about: those named, or all.
import { idBytes } from '../kernel/ids.ts';

/** The account that stands for all of them. */
export const everyAccount = '00000000-0000-0000-0000-000000000000';

/** The condition, to follow another, with its bindings. */
export type Whose = { sql: string; bindings: Buffer[][] };

export const whoseOf = (accounts: readonly string[]): Whose =>
  accounts.includes(everyAccount)
    ? { sql: '', bindings: [] }
    : // Naming both modes lets the primary key of the rollups be used.
      {
        sql: "AND account_id IN (?) AND mode IN ('live', 'test')",
        bindings: [accounts.map(idBytes)],
      };
