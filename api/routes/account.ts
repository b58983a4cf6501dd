// The account itself: who it is, its profile, its settings, its webhook secret (spec section 4, "Account").
import { changeAccount } from '../../lib/accounts/profile.ts';
import type { Account } from '../../lib/accounts/rules.ts';
import { rotateWebhookSecret } from '../../lib/accounts/webhook-secret.ts';
import type { ApiApp } from '../../lib/app.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { fromUsd } from '../../lib/kernel/money.ts';
import { plainLine } from '../../lib/kernel/plain-text.ts';
import { decimal, flag, nullable, object, oneOf, optional, text } from '../../lib/kernel/schema.ts';
import { requireLastingKey, requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { requireProof } from '../../lib/sessions/authenticate.ts';
import { endpointView } from '../../lib/webhooks/manage.ts';
import { accountDetails, accountDetailsView } from '../account-fields.ts';
import { changerOf, changesOf } from '../acting.ts';
import { nullableTimestamp, phoneInput, typed } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'Account';

const detailsOf = async (app: Pick<ApiApp, 'webhooks' | 'clock'>, account: Account) =>
  accountDetailsView(account, await endpointView(app, account));

const me = route({
  ...{ method: 'GET', path: '/v1/clients/me', tag, auth: 'account' },
  summary: 'The account that makes the call.',
  errors: ['NOT_FOUND'],
  data: accountDetails(),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    const found = await app.accounts.find(account.id);
    if (!found) throw fail('NOT_FOUND');
    return detailsOf(app, found);
  },
});

const atLeastOne = (...names: string[]) => ({
  'object.missing': `must hold at least one of ${names.join(', ')}`,
});

const profileShape = () =>
  object({
    name: optional(plainLine().min(1).max(100).description('Name of the owner.')),
    phone: optional(phoneInput()),
    company: optional(nullable(plainLine().max(120).allow('')).description('Company; null: none.')),
    locale: optional(oneOf('en', 'ar').description('Language of messages to the owner.')),
  });

const profile = route({
  ...{ method: 'PATCH', path: '/v1/clients/profile', tag, auth: 'account' },
  summary: 'Changes the profile. The phone, to which forgotten passwords lead, only by session.',
  errors: ['INVALID_PHONE', 'REAUTH_REQUIRED', 'NOT_FOUND'],
  body: profileShape()
    .or('name', 'phone', 'company', 'locale')
    .messages(atLeastOne('name', 'phone', 'company', 'locale')) as ReturnType<typeof profileShape>,
  data: accountDetails(),
  handle: async (app, request) => {
    const { account, session, keyMode, body } = request;
    requireLiveRights(keyMode);
    if (body.phone !== undefined) {
      if (!session) throw fail('REAUTH_REQUIRED', {}, { message: 'Change the phone by session.' });
      requireProof(session, app.clock.now());
    }
    await takeRead(app.reads, 'profile_change', changesOf(request));
    const { company, ...rest } = body;
    const changes = { ...rest, ...(company === undefined ? {} : { company: company || null }) };
    return detailsOf(
      app,
      await changeAccount(app, account.id, changes, changerOf(request, app.clock.now())),
    );
  },
});

const settingsShape = () =>
  object({
    webhook_url: optional(
      nullable(
        typed()
          .max(2048)
          .pattern(/^https:\/\/\S+$/)
          .messages({ 'string.pattern.base': 'must begin with https:// and hold no whitespace' }),
      ).description(
        'Where events go; null: nowhere. An https address of a public host; private addresses and names of private networks are refused.',
      ),
    ),
    spend_cap_hourly: optional(
      nullable(decimal().min(0).max(1_000_000).precision(6)).description(
        'Most that verifications may cost in a UTC hour, USD with at most six decimals; null: no cap.',
      ),
    ),
    waba_template_language: optional(
      nullable(
        text()
          .pattern(/^[a-z]{2}(_[A-Z]{2})?$/)
          .messages({
            'string.pattern.base':
              'must be two lowercase letters, or these with _ and two capitals',
          }),
      ).description('Language of the own template; null: that of the service.'),
    ),
    keys_manage_account: optional(
      flag().description(
        'Whether API keys may change the account; false: they send and read, and nothing more. By session only.',
      ),
    ),
  });

const settingNames = [
  'webhook_url',
  'spend_cap_hourly',
  'waba_template_language',
  'keys_manage_account',
];

const settings = route({
  ...{ method: 'PATCH', path: '/v1/clients/settings', tag, auth: 'account' },
  summary: 'Changes the settings.',
  about:
    'A session needs a login or `security/reauth` within the last ten minutes for `webhook_url`, for a `spend_cap_hourly` that is raised or taken away, and for `keys_manage_account`. An address that is replaced hears of the change, too.',
  errors: ['REAUTH_REQUIRED', 'NOT_FOUND'],
  body: settingsShape()
    .or(...settingNames)
    .messages(atLeastOne(...settingNames)) as ReturnType<typeof settingsShape>,
  data: accountDetails(),
  handle: async (app, request) => {
    const { account, session, keyMode, keyEnds, body } = request;
    requireLiveRights(keyMode);
    requireLastingKey(keyEnds);
    if (body.keys_manage_account !== undefined && !session) {
      const message = 'Whether keys may manage the account is set by session.';
      throw fail('REAUTH_REQUIRED', {}, { message });
    }
    await takeRead(app.reads, 'profile_change', changesOf(request));
    const { webhook_url: url, spend_cap_hourly: cap, waba_template_language: language } = body;
    const { keys_manage_account: keysManage } = body;
    const changes = {
      ...(url === undefined ? {} : { webhookUrl: url }),
      ...(cap === undefined ? {} : { spendCapHourlyMicros: cap === null ? null : fromUsd(cap) }),
      ...(language === undefined ? {} : { templateLanguage: language }),
      ...(keysManage === undefined ? {} : { keysManageAccount: keysManage }),
    };
    const onEndpoint = (id: string) => app.webhooks.enable(id, app.clock.now());
    const changer = changerOf(request, app.clock.now());
    const deps = { ...app, onEndpoint };
    return detailsOf(app, await changeAccount(deps, account.id, changes, changer));
  },
});

const webhookSecret = route({
  ...{ method: 'POST', path: '/v1/clients/webhook-secret/rotate', tag, auth: 'account' },
  summary: 'A new secret for the signatures of webhooks; the one before signs beside it for a day.',
  errors: ['REAUTH_REQUIRED'],
  data: object({
    webhook_secret: text().description('whsec_… as Standard Webhooks writes it. Shown this once.'),
    previous_valid_until: nullableTimestamp(),
  }),
  handle: async (app, request) => {
    const { account, session, keyMode, keyEnds } = request;
    requireLiveRights(keyMode);
    requireLastingKey(keyEnds);
    requireProof(session, app.clock.now());
    await takeRead(app.reads, 'webhook_change', changesOf(request));
    const changer = changerOf(request, app.clock.now());
    const { secret, previousValidUntil: until } = await rotateWebhookSecret(
      app,
      account.id,
      changer,
    );
    return {
      webhook_secret: secret,
      previous_valid_until: until === null ? null : new Date(until).toISOString(),
    };
  },
});

export const accountRoutes = [me, profile, settings, webhookSecret];
