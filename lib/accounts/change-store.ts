// Changes that the owner makes to an account, in MySQL: each with its entry in the security log and the event of it.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { type Act, type Change, newEntry, securityEvent } from './acts.ts';
import { advanceEpoch } from './epoch-store.ts';
import { formerAddressOf, writeFormerEvent } from './former-store.ts';
import { writeSecurityLog } from './log-store.ts';
import { accountFromRow, type Row, textOrNull } from './row.ts';
import type { Account, AccountChanges } from './rules.ts';

/**
 * Decides about a change while nobody else can change the account; it throws what refuses it. `before` is the account
 * as it stands.
 */
export type Allow = (trx: Database, before: Account) => Promise<void>;

/** Who changes something, when (ms), and what may refuse it. */
export type Changing = { act: Act; at: number; allow: Allow };

const settingNames = {
  webhookUrl: 'webhook_url',
  spendCapHourlyMicros: 'spend_cap_hourly',
  templateLanguage: 'waba_template_language',
  keysManageAccount: 'keys_manage_account',
} as const;

const profileNames = { name: 'name', company: 'company', locale: 'locale' } as const;

const columnsOf = (changes: AccountChanges): Row => ({
  ...(changes.name === undefined ? {} : { name: changes.name }),
  ...(changes.phone === undefined ? {} : { phone: changes.phone }),
  ...(changes.company === undefined ? {} : { company: changes.company }),
  ...(changes.locale === undefined ? {} : { locale: changes.locale }),
  ...(changes.webhookUrl === undefined ? {} : { webhook_url: changes.webhookUrl }),
  ...(changes.spendCapHourlyMicros === undefined
    ? {}
    : { spend_cap_hourly_micros: changes.spendCapHourlyMicros }),
  ...(changes.templateLanguage === undefined
    ? {}
    : { template_language: changes.templateLanguage }),
  ...(changes.keysManageAccount === undefined
    ? {}
    : { keys_manage_account: changes.keysManageAccount }),
});

const shown = (value: string | number | boolean | null): string | null =>
  value === null ? null : String(value);

/** What differs from `before`, by the names that callers know. */
const differences = (
  before: Account,
  changes: AccountChanges,
  names: Partial<Record<keyof AccountChanges, string>>,
): Change[] =>
  Object.entries(names).flatMap(([key, setting]) => {
    const name = key as keyof AccountChanges;
    const to = changes[name];
    if (to === undefined || to === before[name]) return [];
    return [{ setting, from: shown(before[name]), to: shown(to) }];
  });

/** Writes the entries of a change and their events within its transaction; answers the events. */
const record = async (
  trx: Database,
  { before, changes, act, at }: { before: Account; changes: AccountChanges; act: Act; at: number },
): Promise<EventWire[]> => {
  const settings = differences(before, changes, settingNames);
  const profile = differences(before, changes, profileNames);
  const phone = differences(before, changes, { phone: 'phone' });
  const entryOf = (
    action: 'settings_changed' | 'profile_changed' | 'phone_changed',
    of: Change[],
  ) => (of.length === 0 ? [] : [newEntry(before.id, act, { action, changes: of })]);
  const changedSettings = entryOf('settings_changed', settings);
  const changedPhone = entryOf('phone_changed', phone);
  await writeSecurityLog(trx, [
    ...changedSettings,
    ...changedPhone,
    ...entryOf('profile_changed', profile),
  ]);
  const names = settings.map(({ setting }) => setting);
  const events = [
    ...changedSettings.map((entry) =>
      securityEvent('security.settings_changed', entry, { at, data: { settings: names } }),
    ),
    ...changedPhone.map((entry) =>
      securityEvent('security.phone_changed', entry, { at, data: {} }),
    ),
  ];
  await insertNews(trx, events);
  return events;
};

/** Runs `work` on the row of an account that is locked, once `allow` let it; undefined when there is none. */
const changing = <T>(
  db: Database,
  id: string,
  { allow, work }: { allow: Allow; work(trx: Database, row: Row): Promise<T> },
): Promise<T | undefined> =>
  withLockRetry(() =>
    db.transaction(async (trx) => {
      const row = await trx<Row>('accounts')
        .where({ id: idBytes(id) })
        .forUpdate()
        .first();
      if (row === undefined) return undefined;
      await allow(trx, accountFromRow(row));
      const done = await work(trx, row);
      await advanceEpoch(trx, id);
      return done;
    }),
  );

export const createChangeStore = (db: Database) => ({
  /**
   * Writes what a profile or settings change names; the rest stays. A webhook address that is replaced is to hear of
   * it, too. Answers the events that tell of it, which are written with it; undefined when there is no such account.
   */
  change: (
    id: string,
    changes: AccountChanges,
    { act, at, allow }: Changing,
  ): Promise<EventWire[] | undefined> =>
    changing(db, id, {
      allow,
      work: async (trx, row) => {
        await trx('accounts')
          .where({ id: idBytes(id) })
          .update(columnsOf(changes));
        const events = await record(trx, { before: accountFromRow(row), changes, act, at });
        const address = formerAddressOf(row);
        const replaced = changes.webhookUrl !== undefined && changes.webhookUrl !== address?.url;
        const told = events.find(({ type }) => type === 'security.settings_changed');
        if (address && replaced && told) await writeFormerEvent(trx, { address, event: told });
        return events;
      },
    }),

  /**
   * Puts a new secret for webhooks before the present one; answers whether there was one, and the events. Where that
   * ends a secret that still signs, the address hears of it under the secrets of before, too.
   */
  rotateWebhookSecret: (
    id: string,
    { sealed, until }: { sealed: string; until: number },
    { act, at, allow }: Changing,
  ): Promise<{ hadOne: boolean; events: EventWire[] } | undefined> =>
    changing(db, id, {
      allow,
      work: async (trx, row) => {
        const before = textOrNull(row.webhook_secret);
        await trx('accounts')
          .where({ id: idBytes(id) })
          .update({
            webhook_secret: sealed,
            webhook_secret_before: before,
            webhook_secret_before_until: before === null ? null : until,
          });
        const changes = [{ setting: 'webhook_secret', from: null, to: null }];
        const entry = newEntry(id, act, { action: 'settings_changed', changes });
        await writeSecurityLog(trx, [entry]);
        const data = { settings: ['webhook_secret'] };
        const event = securityEvent('security.settings_changed', entry, { at, data });
        await insertNews(trx, [event]);
        const address = formerAddressOf(row);
        const ends = address?.secrets.before != null && address.secrets.beforeUntil > at;
        if (address && ends) await writeFormerEvent(trx, { address, event });
        return { hadOne: before !== null, events: [event] };
      },
    }),
});
