// The checks of the books, as SQL: each answers the accounts where two records of the same thing differ.
import type { Database } from '../infra/mysql.ts';
import { day, hour } from '../kernel/clock.ts';
import { idAt, idBytes, idText, idTime } from '../kernel/ids.ts';

type Row = { account_id: Buffer; detail: string };

/** TOTP verifications without their row in the ledger. */
const unchargedTotp = `
    FROM totp_log t LEFT JOIN ledger l ON l.account_id = t.account_id AND l.reference =
      CONCAT('totp:', LOWER(CONCAT_WS('-', SUBSTR(HEX(t.enrollment_id), 1, 8), SUBSTR(HEX(t.enrollment_id), 9, 4),
        SUBSTR(HEX(t.enrollment_id), 13, 4), SUBSTR(HEX(t.enrollment_id), 17, 4), SUBSTR(HEX(t.enrollment_id), 21))), ':', t.step)
    WHERE t.mode = 'live' AND t.status = 'verified' AND t.id < :id AND l.seq IS NULL`;

const checks = {
  'the balance is the sum of the ledger': `
    SELECT a.id AS account_id, CONCAT('balance ', a.balance_micros, ', sum ', COALESCE(SUM(l.amount_micros), 0)) AS detail
    FROM accounts a LEFT JOIN ledger l ON l.account_id = a.id
    GROUP BY a.id, a.balance_micros HAVING a.balance_micros <> COALESCE(SUM(l.amount_micros), 0)`,
  'the sequence has no gap': `
    SELECT a.id AS account_id, CONCAT('sequence ', a.ledger_seq, ', rows ', COUNT(l.seq), ', last ', COALESCE(MAX(l.seq), 0)) AS detail
    FROM accounts a LEFT JOIN ledger l ON l.account_id = a.id
    GROUP BY a.id, a.ledger_seq HAVING a.ledger_seq <> COUNT(l.seq) OR a.ledger_seq <> COALESCE(MAX(l.seq), 0)`,
  'each row continues the balance before it': `
    SELECT l.account_id, CONCAT('at ', l.seq) AS detail
    FROM ledger l LEFT JOIN ledger b ON b.account_id = l.account_id AND b.seq = l.seq - 1
    WHERE l.balance_after <> COALESCE(b.balance_after, 0) + l.amount_micros`,
  'every verified message is charged, at its price': `
    SELECT m.account_id, CONCAT('message ', LOWER(HEX(m.id))) AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.message_id = m.id AND l.kind = 'charge'
    WHERE m.mode = 'live' AND m.status = 'verified' AND m.verified_at < :through
      AND NOT (m.plan = 'per_message' AND m.price_micros = 0)
      AND (l.seq IS NULL OR l.amount_micros <> IF(m.plan = 'trial', 0, -CAST(m.price_micros AS SIGNED)))`,
  'every message of the plan per message is charged when it was taken': `
    SELECT m.account_id, CONCAT('message ', LOWER(HEX(m.id))) AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.message_id = m.id AND l.kind = 'charge'
    WHERE m.mode = 'live' AND m.plan = 'per_message' AND m.price_micros > 0
      AND m.accepted_at < :through AND l.seq IS NULL`,
  'a refund stands behind all failed ones that were charged': `
    SELECT m.account_id, CONCAT('message ', LOWER(HEX(m.id))) AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.message_id = m.id AND l.kind = 'refund'
    WHERE m.mode = 'live' AND m.plan = 'per_message' AND m.price_micros > 0 AND m.accepted_at IS NOT NULL
      AND m.failed_at < :through AND m.status = 'failed' AND l.seq IS NULL`,
  // A refund is final: what arrives after it stays paid back.
  'a refund stands behind failed ones only': `
    SELECT l.account_id, CONCAT('message ', LOWER(HEX(m.id))) AS detail
    FROM ledger l JOIN messages m ON m.id = l.message_id
    WHERE l.kind = 'refund' AND l.id < :id AND m.failed_at IS NULL`,
  'every payment received is booked, as it came': `
    SELECT COALESCE(p.account_id, REPEAT(CHAR(0), 16)) AS account_id, CONCAT('payment ', p.name) AS detail
    FROM payments p LEFT JOIN ledger l
      ON l.account_id = p.account_id AND l.reference = CONCAT('deposit:', p.name)
    WHERE p.received_at < :through AND (l.seq IS NULL OR l.amount_micros <> p.amount_micros)`,
  'every deposit by checkout was received': `
    SELECT l.account_id, l.reference AS detail FROM ledger l
    LEFT JOIN payments p ON p.account_id = l.account_id AND CONCAT('deposit:', p.name) = l.reference
    WHERE l.kind = 'deposit' AND l.reference LIKE 'deposit:cs\\_%' AND l.id < :id AND p.name IS NULL`,
  'nothing is charged for a message that is not there': `
    SELECT l.account_id, l.reference AS detail FROM ledger l
    LEFT JOIN messages m ON m.id = l.message_id
    WHERE l.message_id >= :kept AND l.id < :id AND (m.id IS NULL OR m.mode = 'test')`,
  'every TOTP verification is charged': `
    SELECT t.account_id, CONCAT('enrollment ', LOWER(HEX(t.enrollment_id)), ' step ', t.step) AS detail
    ${unchargedTotp}`,
} as const;

export type CheckName = keyof typeof checks;

export type ReconcileStore = ReturnType<typeof createReconcileStore>;

export const createReconcileStore = (db: Database) => ({
  checks: Object.keys(checks) as CheckName[],

  /** What a check finds, of everything before `through` (ms). */
  run: async (
    name: CheckName,
    through: number,
  ): Promise<{ accountId: string; detail: string }[]> => {
    // Messages from before are gone with their retention; what they were charged stays.
    const kept = await db('rollup_state').where({ id: 1 }).first('kept_from_hour');
    const keptFrom = Number(kept?.kept_from_hour ?? 0) * hour;
    const given = { through, id: idBytes(idAt(through)), kept: idBytes(idAt(keptFrom)) };
    const [rows] = (await db.raw(checks[name], given)) as [Row[]];
    return rows.map((row) => ({ accountId: idText(row.account_id), detail: row.detail }));
  },

  /** TOTP verifications of the last day, up to `through` (ms), whose event was lost before it was charged. */
  forgottenTotp: async (through: number, limit: number) => {
    const given = { id: idBytes(idAt(through)), since: idBytes(idAt(through - day)), limit };
    const [rows] = (await db.raw(
      `SELECT t.account_id, t.enrollment_id, t.step, t.price_micros, t.id
       ${unchargedTotp} AND t.id > :since LIMIT :limit`,
      given,
    )) as [Record<string, unknown>[]];
    return rows.map((row) => ({
      accountId: idText(row.account_id as Buffer),
      enrollmentId: idText(row.enrollment_id as Buffer),
      step: Number(row.step),
      priceMicros: Number(row.price_micros),
      at: idTime(idText(row.id as Buffer)),
    }));
  },

  countAccounts: async (): Promise<number> => {
    const [row] = await db('accounts').count({ count: '*' });
    return Number(row?.count ?? 0);
  },
});
