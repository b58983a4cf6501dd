// The checks of the books, as SQL: each answers the accounts where two records of the same thing differ.

/** An id as the references of the ledger write it, in the ledger's own alphabet so that its key is of use. */
const nameOf = (prefix: string, id: string, ...rest: string[]): string => {
  const hex = `HEX(${id})`;
  const parts = [
    [1, 8],
    [9, 4],
    [13, 4],
    [17, 4],
    [21, 12],
  ].map(([from, length]) => `SUBSTR(${hex}, ${from}, ${length})`);
  const text = [`'${prefix}:'`, `LOWER(CONCAT_WS('-', ${parts.join(', ')}))`, ...rest].join(', ');
  return `CONVERT(CONCAT(${text}) USING ascii) COLLATE ascii_bin`;
};

const ofMessage = (detail = 'm.id') => `CONCAT('message ', LOWER(HEX(${detail})))`;

const totpName = nameOf('totp', 't.enrollment_id', `':'`, 't.step');

/** Live TOTP verifications and what the ledger has for each. */
export const totpWithLedger = `
    FROM totp_log t LEFT JOIN ledger l ON l.account_id = t.account_id AND l.reference = ${totpName}
    WHERE t.mode = 'live' AND t.status = 'verified'`;

/**
 * What a message owes for its success, or for being taken; the sign is the ledger's. A message says on which plan it was
 * charged: on the trial its success was free.
 */
const owed = `IF(m.plan = 'trial', 0, -CAST(m.price_micros AS SIGNED))`;

/** Its step is half a minute since 1970: the log of one from before what is kept is gone. */
const totpCharge = `l.kind = 'totp' AND l.id < :id
      AND CAST(SUBSTRING_INDEX(l.reference, ':', -1) AS UNSIGNED) * 30000 >= :keptFrom`;

/** How many free verifications a row of the plan trial uses up: a refund gives one back. */
const freeUse = `CASE l.kind WHEN 'charge' THEN 1 WHEN 'totp' THEN 1 WHEN 'refund' THEN -1 ELSE 0 END`;

const sums = {
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
  'free verifications used are those of the ledger': `
    SELECT a.id AS account_id, CONCAT('used ', a.trial_used, ', rows ', COALESCE(SUM(${freeUse}), 0)) AS detail
    FROM accounts a LEFT JOIN ledger l ON l.account_id = a.id AND l.plan = 'trial'
    GROUP BY a.id, a.trial_used HAVING a.trial_used <> COALESCE(SUM(${freeUse}), 0)`,
  'what used a free verification cost nothing': `
    SELECT l.account_id, CONCAT('at ', l.seq) AS detail FROM ledger l
    WHERE l.plan = 'trial' AND l.amount_micros <> 0`,
  'no success was paid for while a free verification was left': `
    SELECT l.account_id, CONCAT('at ', l.seq, ': ', l.reference) AS detail FROM ledger l
    WHERE l.trial_left > 0 AND (l.plan <> 'trial' OR l.amount_micros <> 0)`,
  'who has deposited has a deposit in the ledger': `
    SELECT a.id AS account_id, CONCAT('deposits ', COUNT(l.seq)) AS detail
    FROM accounts a LEFT JOIN ledger l ON l.account_id = a.id AND l.kind = 'deposit'
    GROUP BY a.id, a.deposited_at HAVING (a.deposited_at IS NULL) <> (COUNT(l.seq) = 0)`,
  // References are unique, so what bears its right name stands once.
  'each row bears the name of what it is for': `
    SELECT l.account_id, CONCAT('at ', l.seq, ': ', l.reference) AS detail FROM ledger l
    WHERE NOT IF(l.kind IN ('charge', 'refund'),
      l.message_id IS NOT NULL AND l.reference IN (${nameOf('charge', 'l.message_id')}, ${nameOf('refund', 'l.message_id')}),
      l.message_id IS NULL) OR LOCATE(CONCAT(l.kind, ':'), l.reference) <> 1`,
  'deposits and refunds come, charges go': `
    SELECT l.account_id, CONCAT('at ', l.seq) AS detail FROM ledger l
    WHERE (l.kind IN ('deposit', 'grant', 'refund') AND l.amount_micros < 0)
      OR (l.kind IN ('charge', 'totp') AND l.amount_micros > 0)`,
};

const messages = {
  'every verified message is charged, at its price': `
    SELECT m.account_id, ${ofMessage()} AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.reference = ${nameOf('charge', 'm.id')}
    WHERE m.mode = 'live' AND m.plan <> 'per_message' AND m.verified_at < :through
      AND (l.seq IS NULL OR l.amount_micros <> ${owed})`,
  'every message of the plan per message is charged when it was taken': `
    SELECT m.account_id, ${ofMessage()} AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.reference = ${nameOf('charge', 'm.id')}
    WHERE m.mode = 'live' AND m.plan = 'per_message' AND m.price_micros > 0
      AND m.accepted_at < :through AND (l.seq IS NULL OR l.amount_micros <> ${owed})`,
  'what is charged was verified, or taken where that is paid for': `
    SELECT l.account_id, l.reference AS detail FROM ledger l JOIN messages m ON m.id = l.message_id
    WHERE l.kind = 'charge' AND l.id < :id
      AND (m.account_id <> l.account_id OR IF(m.plan = 'per_message', m.accepted_at, m.verified_at) IS NULL)`,
  'a refund stands behind all failed ones that were charged': `
    SELECT m.account_id, ${ofMessage()} AS detail FROM messages m
    LEFT JOIN ledger l ON l.account_id = m.account_id AND l.reference = ${nameOf('refund', 'm.id')}
    WHERE m.mode = 'live' AND m.plan = 'per_message' AND m.price_micros > 0 AND m.accepted_at IS NOT NULL
      AND m.failed_at < :through AND m.status = 'failed' AND l.seq IS NULL`,
  // A refund is final: what arrives after it stays paid back.
  'a refund stands behind failed ones only, and gives back their charge': `
    SELECT l.account_id, ${ofMessage('l.message_id')} AS detail FROM ledger l
    LEFT JOIN messages m ON m.id = l.message_id
    LEFT JOIN ledger c ON c.account_id = l.account_id AND c.reference = ${nameOf('charge', 'l.message_id')}
    WHERE l.kind = 'refund' AND l.id < :id
      AND ((m.id IS NOT NULL AND m.failed_at IS NULL) OR c.seq IS NULL OR c.amount_micros + l.amount_micros <> 0)`,
  'nothing is charged for a message that is not there': `
    SELECT l.account_id, l.reference AS detail FROM ledger l
    LEFT JOIN messages m ON m.id = l.message_id
    WHERE l.message_id >= :kept AND l.id < :id AND (m.id IS NULL OR m.mode = 'test')`,
};

const payments = {
  'every payment received is booked, as it came': `
    SELECT COALESCE(p.account_id, REPEAT(CHAR(0), 16)) AS account_id, CONCAT('payment ', p.name) AS detail
    FROM payments p LEFT JOIN ledger l
      ON l.account_id = p.account_id AND l.reference = CONCAT('deposit:', p.name)
    WHERE p.received_at < :through AND (l.seq IS NULL OR l.amount_micros <> p.amount_micros)`,
  'every payment taken back is booked, as it went': `
    SELECT p.account_id, CONCAT('reversal ', r.name) AS detail
    FROM payment_reversals r JOIN payments p ON p.intent = r.intent LEFT JOIN ledger l
      ON l.account_id = p.account_id AND l.reference = CONCAT('adjust:', r.name)
    WHERE p.account_id IS NOT NULL AND r.amount_micros <> 0 AND r.received_at < :through
      AND (l.seq IS NULL OR l.amount_micros <> -r.amount_micros)`,
  'every deposit by checkout was received': `
    SELECT l.account_id, l.reference AS detail FROM ledger l
    LEFT JOIN payments p ON p.account_id = l.account_id AND CONCAT('deposit:', p.name) = l.reference
    WHERE l.kind = 'deposit' AND l.reference LIKE 'deposit:cs\\_%' AND l.id < :id AND p.name IS NULL`,
};

const totp = {
  'every TOTP verification is charged, at its price': `
    SELECT t.account_id, CONCAT('enrollment ', LOWER(HEX(t.enrollment_id)), ' step ', t.step) AS detail
    ${totpWithLedger} AND t.id < :id AND (l.seq IS NULL OR l.amount_micros <> IF(l.plan = 'trial', 0, -CAST(t.price_micros AS SIGNED)))`,
  // Counted, since no index leads from a row of the ledger to its verification.
  'every TOTP charge has its verification': `
    SELECT l.account_id, CONCAT('charges ', COUNT(*), ', verifications ', COALESCE(MAX(v.matched), 0)) AS detail
    FROM ledger l LEFT JOIN (
      SELECT t.account_id, COUNT(*) AS matched ${totpWithLedger} AND ${totpCharge} GROUP BY t.account_id
    ) v ON v.account_id = l.account_id
    WHERE ${totpCharge} GROUP BY l.account_id HAVING COUNT(*) <> COALESCE(MAX(v.matched), 0)`,
};

export const checks = { ...sums, ...messages, ...payments, ...totp } as const;
