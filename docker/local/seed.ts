// The demo account of the local stack, made with the product's own code; prints it as JSON, the same on every start.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createPasswords } from '../../lib/accounts/passwords.ts';
import type { Account } from '../../lib/accounts/rules.ts';
import { type AccountStore, createAccountStore } from '../../lib/accounts/store.ts';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { createLedgerStore, type LedgerStore } from '../../lib/billing/ledger-store.ts';
import type { Posting } from '../../lib/billing/rules.ts';
import { createMysql, type Database } from '../../lib/infra/mysql.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { createSealer, randomToken, type Sealer } from '../../lib/kernel/secrets.ts';
import { type IssuedKey, newKey } from '../../lib/keys/issue.ts';
import { keyHash } from '../../lib/keys/rules.ts';
import { createKeyStore } from '../../lib/keys/store.ts';
import { type CreateDeps, createAccount } from '../../lib/signup/create.ts';
import { createSignupStore } from '../../lib/signup/store.ts';
import { createWebhookStore } from '../../lib/webhooks/store.ts';

type Demo = {
  account: { email: string; password: string };
  keys: { live: string; test: string };
};

type Stores = CreateDeps & {
  accounts: ReturnType<typeof createAccountStore>;
  keys: ReturnType<typeof createKeyStore>;
};

const email = 'demo@tessera.example';
const demoCreditMicros = 1_000_000_000;

const readDemo = async (file: string): Promise<Demo | undefined> => {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Demo;
  } catch {
    return undefined;
  }
};

/** Whether the database still knows the keys that were written down. */
const isKnown = async (stores: Stores, demo: Demo): Promise<boolean> =>
  (await stores.keys.findBySecret(keyHash(demo.keys.live))) !== undefined &&
  (await stores.keys.findBySecret(keyHash(demo.keys.test))) !== undefined;

const makeKeys = async (stores: Stores, accountId: string): Promise<Demo['keys']> => {
  const issue = async (mode: 'live' | 'test'): Promise<IssuedKey> => {
    const issued = newKey({ accountId, name: `Demo, ${mode}`, mode, madeByKey: null });
    await stores.keys.insert(issued.record, issued.hash);
    return issued;
  };
  const [live, test] = [await issue('live'), await issue('test')];
  return { live: live.key, test: test.key };
};

const seed = async (stores: Stores, old: Demo | undefined): Promise<Demo> => {
  if (old && (await isKnown(stores, old))) return old;
  const password = old?.account.password ?? randomToken(12);
  const { account } =
    (await stores.accounts.findByEmail(email)) ??
    (await createAccount(stores, {
      ...{ email, password, name: 'Demo', phone: '+14155550100' },
      ...{ company: 'Tessera Demo', locale: 'en' },
    }));
  return { account: { email, password }, keys: await makeKeys(stores, account.id) };
};

/** Credit to try things with; one reference, so it is booked once however often the stack starts. */
const fund = async (ledger: LedgerStore, accountId: string): Promise<void> => {
  const now = systemClock.now();
  const posting: Posting = {
    ...{ accountId, reference: 'deposit:demo', kind: 'deposit', amountMicros: demoCreditMicros },
    ...{ plan: null, priceMicros: null, messageId: null, usesTrial: false, at: now },
    note: 'Credit of the demo account',
  };
  await ledger.post([posting], now);
};

/**
 * Points the account at the receiver beside the simulated phones, which gets the secret; an address that its owner has
 * set stays. Each start sets it again, so that what was held goes out.
 */
const pointAtReceiver = async (
  deps: { accounts: AccountStore; sealer: Sealer; db: Database; folder: string },
  account: Account,
): Promise<void> => {
  const [secret] = await signingSecrets({ ...deps, clock: systemClock }, account.id);
  if (secret) await writeFile(join(deps.folder, 'webhook-secret'), secret, { mode: 0o600 });
  const { SIM_PORT, RECEIVER_URL } = process.env;
  // Without containers everything is on this machine.
  const url = RECEIVER_URL ?? (SIM_PORT && `http://127.0.0.1:${SIM_PORT}/receiver`);
  if (!url || account.webhookUrl?.startsWith('https://')) return;
  const act = { by: 'operator', credentialId: null, ip: null, requestId: null } as const;
  const changing = { act, at: systemClock.now(), allow: () => Promise.resolve() };
  await deps.accounts.change(account.id, { webhookUrl: url }, changing);
  await createWebhookStore(deps.db).enable(account.id, systemClock.now());
};

const config = loadConfig(process.env);
const db = createMysql({ url: config.mysqlUrl, pool: 1 });
const passwords = createPasswords();
try {
  const folder = process.env.TESSERA_STATE ?? '.local';
  const file = join(folder, 'demo.json');
  const demo = await seed(
    {
      accounts: createAccountStore(db),
      keys: createKeyStore(db),
      signups: createSignupStore(db),
      passwords,
      sealer: createSealer(config.sealingKeys),
      trialVerifications: config.trialVerifications,
      sharedGrant: { unverified: config.sharedUnverified, perVerified: config.sharedPerVerified },
    },
    await readDemo(file),
  );
  const accounts = createAccountStore(db);
  const found = await accounts.findByEmail(email);
  if (found) {
    await fund(createLedgerStore(db), found.account.id);
    const sealer = createSealer(config.sealingKeys);
    await pointAtReceiver({ accounts, sealer, db, folder }, found.account);
  }
  await writeFile(file, JSON.stringify(demo), { mode: 0o600 });
  process.stdout.write(`${JSON.stringify(demo)}\n`);
} finally {
  await Promise.all([db.destroy(), passwords.close()]);
}
