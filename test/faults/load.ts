// The load: sends at a steady pace from many accounts, some repeated under their key, half of them verified.
import { createMysql } from '../../lib/infra/mysql.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { keyFacts, keyHash, newKeyText } from '../../lib/keys/rules.ts';
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

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Accounts with a live key each, so many that no limit of an account is met. */
export const seedKeys = async ({ engines }: StackFile): Promise<string[]> => {
  const db = createMysql({ url: engines.mysql, pool: 1 });
  const keys: string[] = [];
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
    keys.push(key);
  }
  await db.destroy();
  return keys;
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
  api: string,
  keys: readonly string[],
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
    const key = keys[n % keys.length] ?? '';
    const phone = `+1${areaCodes[n % areaCodes.length]}${2_000_000 + n}`;
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
