// An account as its owner sees it: the schema, and the view that fills it.
import type { Account } from '../lib/accounts/rules.ts';
import { toUsd } from '../lib/kernel/money.ts';
import { decimal, flag, integer, nullable, object, oneOf, text } from '../lib/kernel/schema.ts';
import type { EndpointView } from '../lib/webhooks/manage.ts';
import { nullableTimestamp, timestamp } from './fields.ts';

const identity = {
  id: text().guid().description('Id of the account.'),
  email: text().description('E-mail address, as it was typed.').example('dev@example.com'),
  name: text().description('Name of the owner.').example('Ada Lovelace'),
  phone: text().description('Phone of the account itself, E.164.').example('+14155550123'),
  company: nullable(text()).description('Company, if any.'),
  locale: text().description('Language of messages to the owner.').example('en'),
  status: oneOf('active', 'suspended', 'closed').description('State of the account.'),
  billing_plan: oneOf('trial', 'pay_per_success', 'per_message').description('Billing plan.'),
  created_at: timestamp(),
};

/** What register and login answer of an account (design section 4). */
export const accountData = () => object(identity);

const webhookState = () =>
  object({
    status: oneOf('active', 'failing', 'paused', 'disabled').description(
      'failing: nothing was taken since failing_since. paused: it asked for time with Retry-After. ' +
        'disabled: events are held until webhook_url is set again; one that was failing gets one event a day, ' +
        'and goes on when it takes it.',
    ),
    disabled_reason: nullable(oneOf('gone', 'failing', 'unsafe_address')).description(
      'gone: it answered 410. failing: it took nothing for five days. unsafe_address: it is not public.',
    ),
    failing_since: nullableTimestamp(),
    failures: integer().min(0).description('Attempts that failed since then.'),
    disables_at: nullable(
      timestamp().description(
        'When it will be disabled, at the earliest, unless it takes something before.',
      ),
    ),
    disabled_at: nullableTimestamp(),
    paused_until: nullableTimestamp(),
    replay: nullable(
      object({
        status: oneOf('running', 'finished'),
        total: integer().min(0).description('Events that were held when it began.'),
        released: integer().min(0).description('How many of them are on their way or delivered.'),
        started_at: timestamp(),
        finished_at: nullableTimestamp(),
      }),
    ).description('The last replay of held events; null: there was none.'),
  });

/** What `me`, profile and settings answer. */
export const accountDetails = () =>
  object({
    ...identity,
    webhook_url: nullable(text()).description('Where events go; null: nowhere.'),
    spend_cap_hourly: nullable(decimal()).description(
      'Most that verifications may cost in a UTC hour, USD; null: no cap.',
    ),
    waba_template_language: nullable(text()).description(
      'Language of the own template; null: that of the service.',
    ),
    keys_manage_account: flag().description(
      'Whether API keys may change the account; false: they send and read, and nothing more.',
    ),
    mfa_enabled: flag().description('Whether a login asks for a second factor.'),
    webhook: nullable(webhookState()).description('How webhook_url fares; null: none is set.'),
  });

export const accountView = (account: Account) => ({
  id: account.id,
  email: account.email,
  name: account.name,
  phone: account.phone,
  company: account.company,
  locale: account.locale,
  status: account.status,
  billing_plan: account.billingPlan,
  created_at: new Date(account.createdAt).toISOString(),
});

export const accountDetailsView = (account: Account, webhook: EndpointView | null) => ({
  ...accountView(account),
  webhook_url: account.webhookUrl,
  spend_cap_hourly:
    account.spendCapHourlyMicros === null ? null : toUsd(account.spendCapHourlyMicros),
  waba_template_language: account.templateLanguage,
  keys_manage_account: account.keysManageAccount,
  mfa_enabled: account.mfaEnabledAt !== null,
  webhook,
});
