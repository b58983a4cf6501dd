// The load: sends at a steady pace from many accounts, some repeated under their key, most of them verified, and some
// to phones that only Telegram reaches.
import { createMysql } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { keyFacts, keyHash, newKeyText } from '../../lib/keys/rules.ts';
import { chatIdOf } from '../simulators/telegram-chats.ts';
import { control } from '../support/control.ts';
import { fundedRow, insertLedger } from '../support/money.ts';
import type { StackFile } from './stand.ts';

/** What the client saw of one send; status 0 is a connection that broke. */
export type Seen = {
  phone: string;
  status: number;
  code: string | undefined;
  messageId: string | undefined;
  /** The send was repeated under its Idempotency-Key after a failure. */
  repeated: boolean;
  verified: boolean;
};

export type Load = {
  seen: Seen[];
  verifies: Record<string, number>;
  /** Resolves when every answer is in. */
  end(): Promise<void>;
};

const accounts = 80;
const code = '424242';
const areaCodes = ['202', '212', '312', '415', '617', '702'];
const maxInFlight = 250;
const patienceMs = 25_000;

/** More than the load can spend. */
const usdEach = 10_000;

/** Who sends. */
type Sender = { accountId: string; key: string };

const phoneOf = (n: number): string => `+1${areaCodes[n % areaCodes.length]}${2_000_000 + n}`;

/** How WhatsApp fails for the phones that only Telegram reaches: one of each sixteen at once, one by a receipt. */
const unreachable: Record<number, string> = { 4: 'unreachable_sync', 10: 'unreachable_async' };
const failureOf = (n: number): string | undefined => unreachable[n % 16];

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Accounts with a live key each, so many that no limit of an account is met. */
export const seedSenders = async ({ engines }: StackFile): Promise<Sender[]> => {
  const db = createMysql({ url: engines.mysql, pool: 1 });
  const senders: Sender[] = [];
  for (let n = 0; n < accounts; n++) {
    const id = newId();
    const key = newKeyText('live');
    const email = `${id}@faults.example`;
    const money = fundedRow(id, usdEach, Date.now());
    await db('accounts').insert({
      ...{ id: idBytes(id), email, email_key: email, password_hash: '-', name: 'Faults' },
      ...{ phone: '+14155550100', locale: 'en', status: 'active', billing_plan: 'trial' },
      ...{ tier: 'standard', created_at: Date.now(), ...money.account },
    });
    await insertLedger(db, [money.ledger]);
    await db('api_keys').insert({
      ...{ id: idBytes(newId()), account_id: idBytes(id), name: 'Faults', mode: 'live' },
      ...{ secret_hash: keyHash(key), ...keyFacts(key, 'live'), created_at: Date.now() },
    });
    senders.push({ accountId: id, key });
  }
  await db.destroy();
  return senders;
};

/** Links the phones of the first `total` sends that only Telegram will reach. */
export const linkPhones = async (
  { engines }: StackFile,
  senders: readonly Sender[],
  total: number,
): Promise<void> => {
  const db = createMysql({ url: engines.mysql, pool: 1 });
  const linked = Array.from({ length: total }, (_, n) => n).filter((n) => failureOf(n));
  await db.batchInsert(
    'telegram_links',
    linked.map((n) => ({
      account_id: idBytes(senders[n % senders.length]?.accountId ?? ''),
      ...{ mode: 'live', phone: phoneOf(n), chat_id: chatIdOf(phoneOf(n)) },
      ...{ proof: 'contact', linked_at: Date.now() },
    })),
    500,
  );
  await db.destroy();
};

type Answer = { status: number; data?: { message_id?: string }; error?: { code?: string } };

const post = async (
  url: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<Answer> => {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(patienceMs),
    });
    return { status: answer.status, ...((await answer.json()) as Omit<Answer, 'status'>) };
  } catch {
    return { status: 0 };
  }
};

/** Sends `total` codes, `perSecond` a second, each to a phone of its own. */
export const startLoad = (
  { api, sim }: StackFile,
  senders: readonly Sender[],
  plan: { total: number; perSecond: number },
): Load => {
  const seen: Seen[] = [];
  const verifies: Record<string, number> = {};
  const running = new Set<Promise<void>>();

  const verify = async (phone: string, key: string): Promise<boolean> => {
    const headers = { authorization: `Bearer ${key}` };
    const { status, error } = await post(`${api}/v1/otp/verify`, headers, { phone, code });
    const name = `${status} ${error?.code ?? ''}`.trim();
    verifies[name] = (verifies[name] ?? 0) + 1;
    return status === 200 || error?.code === 'BILLING_ERROR';
  };

  const send = async (n: number): Promise<void> => {
    const key = senders[n % senders.length]?.key ?? '';
    const phone = phoneOf(n);
    const whatsapp = failureOf(n);
    // Without simulators the run is over; whoever ended it says why.
    if (whatsapp)
      await control(sim, 'PUT', `/phones/${phone}/behaviour`, { whatsapp }).catch(() => undefined);
    const keyed = n % 4 === 0 ? { 'Idempotency-Key': `faults-${n}` } : undefined;
    const headers = { authorization: `Bearer ${key}`, ...keyed };
    const call = () => post(`${api}/v1/otp/deliver`, headers, { phone, code });
    let answer = await call();
    const repeated = keyed !== undefined && answer.status !== 200;
    for (let tries = 0; keyed && answer.status !== 200 && tries < 20; tries++) {
      await sleep(2_000);
      answer = await call();
    }
    const sent = answer.status === 200;
    // A quarter is never verified: those end as expired.
    const verified = sent && n % 4 !== 1 && (await verify(phone, key));
    seen.push({
      ...{ phone, status: answer.status, code: answer.error?.code, repeated, verified },
      messageId: answer.data?.message_id?.slice('otp_'.length),
    });
  };

  const drive = async (): Promise<void> => {
    for (let n = 0; n < plan.total; n++) {
      while (running.size >= maxInFlight) await sleep(20);
      const task: Promise<void> = send(n).finally(() => running.delete(task));
      running.add(task);
      await sleep(1000 / plan.perSecond);
    }
    await Promise.all(running);
  };
  const driven = drive();
  return { seen, verifies, end: () => driven };
};
