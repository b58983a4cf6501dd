// The settings: whether they can be read, and whether they make sense together.
import { type Config, ConfigError, loadConfig, settings } from '../kernel/config.ts';
import { misspelt } from './misspelt.ts';
import { type Finding, findingsOf } from './rules.ts';

const { ok, warning, error } = findingsOf('Settings');

type Check = (config: Config) => Finding | undefined;

const isLocal = (url: string): boolean => /^http:\/\/(127\.|localhost|\[::1\])/.test(url);

const whatsapp: Check = ({ whatsappPhoneNumberId: number, whatsappAccessToken: token }) => {
  if (number !== '' && token !== '') return undefined;
  if (number === '' && token === '') {
    const text =
      'There is no shared WhatsApp number: only customers with a number of their own reach anybody.';
    return warning(
      'settings.no_whatsapp',
      text,
      'Set WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN.',
    );
  }
  const lacks = number === '' ? 'WHATSAPP_PHONE_NUMBER_ID' : 'WHATSAPP_ACCESS_TOKEN';
  return error(
    'settings.half_whatsapp',
    `${lacks} is empty, its counterpart is set.`,
    `Set ${lacks}.`,
  );
};

const receipts: Check = (config) => {
  if (config.whatsappPhoneNumberId === '' || config.whatsappAppSecret !== '') return undefined;
  const text =
    'WHATSAPP_APP_SECRET is empty: receipts are refused, so no message ever counts as delivered.';
  return error('settings.no_app_secret', text, 'Set it to the secret of the Meta app.');
};

const handshake: Check = (config) => {
  if (config.whatsappPhoneNumberId === '' || config.whatsappVerifyToken !== '') return undefined;
  const text = 'WHATSAPP_VERIFY_TOKEN is empty: Meta cannot confirm the webhook.';
  return warning(
    'settings.no_verify_token',
    text,
    'Set it to a word of your choice, here and in the Meta app.',
  );
};

const telegram: Check = (config) => {
  const {
    telegramBotToken: token,
    telegramBotUsername: name,
    telegramWebhookSecret: word,
  } = config;
  if (token === '') {
    const text = 'There is no Telegram bot: whoever WhatsApp does not reach gets no code.';
    return warning(
      'settings.no_telegram',
      text,
      'Make a bot and set TELEGRAM_BOT_TOKEN; /docs/telegram says how.',
    );
  }
  const lacks = [
    ...(name === '' ? ['TELEGRAM_BOT_USERNAME'] : []),
    ...(word === '' ? ['TELEGRAM_WEBHOOK_SECRET'] : []),
  ];
  if (lacks.length === 0) return undefined;
  const text = `There is a Telegram bot, but ${lacks.join(' and ')} is empty: nobody can link it.`;
  return error('settings.half_telegram', text, `Set ${lacks.join(' and ')}.`);
};

const tap: Check = ({ telegramBotToken, telegramLinkProof }) => {
  if (telegramBotToken === '' || telegramLinkProof !== 'tap') return undefined;
  const text =
    'TELEGRAM_LINK_PROOF is tap: whoever sees a link can receive the codes of its phone.';
  return warning('settings.tap', text, 'Set it to contact unless you accept that.');
};

const totp: Check = ({ totpKeys }) =>
  totpKeys.length > 0
    ? undefined
    : warning(
        'settings.no_totp',
        'TOTP_KEYS is empty: TOTP answers TOTP_NOT_CONFIGURED.',
        'Set a key of its own.',
      );

const stripe: Check = ({ stripeSecretKey: key, stripeWebhookSecret: word }) => {
  if ((key === '') === (word === '')) return undefined;
  const lacks = key === '' ? 'STRIPE_SECRET_KEY' : 'STRIPE_WEBHOOK_SECRET';
  return error(
    'settings.half_stripe',
    `${lacks} is empty: no deposit can be made.`,
    `Set ${lacks}.`,
  );
};

const returnUrl: Check = ({ stripeSecretKey, depositReturnUrl }) => {
  if (stripeSecretKey === '' || !depositReturnUrl.startsWith('https://example.com'))
    return undefined;
  const text = 'DEPOSIT_RETURN_URL is the example: people who paid end up nowhere.';
  return warning('settings.return_url', text, 'Set it to a page of yours.');
};

const openPlayground: Check = ({ playground, turnstileSecret }) => {
  if (playground !== 'live' || turnstileSecret !== '') return undefined;
  const text = 'The playground sends real messages, and no bot check guards it.';
  return warning(
    'settings.open_playground',
    text,
    'Set TURNSTILE_SECRET and TURNSTILE_SITE_KEY, or PLAYGROUND=sandbox.',
  );
};

const siteKey: Check = ({ turnstileSecret, turnstileSiteKey, playground }) => {
  if (turnstileSecret === '' || turnstileSiteKey !== '' || playground === 'off') return undefined;
  const text = 'The playground asks for a bot check its page does not show.';
  return warning('settings.no_site_key', text, 'Set TURNSTILE_SITE_KEY.');
};

const sharedKeys: Check = ({ codePeppers, phonePepper, sealingKeys, totpKeys }) => {
  const lists = [codePeppers, phonePepper, sealingKeys, totpKeys];
  const all = lists.flatMap((list) => [...new Set(list.map(({ key }) => key.toString('hex')))]);
  if (new Set(all).size === all.length) return undefined;
  const text =
    'The same key stands in two of CODE_PEPPERS, PHONE_PEPPER, SEALING_KEYS and TOTP_KEYS.';
  return warning(
    'settings.shared_key',
    text,
    'Make one for each purpose, so that one that leaks opens one thing.',
  );
};

const ops: Check = ({ opsHost, opsToken }) => {
  if (opsToken === '' || /^(127\.|localhost$|::1$)/.test(opsHost)) return undefined;
  const text = `The operators’ listener is on ${opsHost}, not on loopback.`;
  return warning('settings.ops_open', text, 'See to it that no public network reaches OPS_PORT.');
};

const plain: Check = (config) => {
  const urls = [config.whatsappBaseUrl, config.telegramBaseUrl, config.stripeBaseUrl];
  const bare = urls.filter((url) => !url.startsWith('https://'));
  if (bare.length === 0) return undefined;
  return bare.every(isLocal)
    ? ok('settings.simulated', 'Providers are simulated on this machine: no real message goes out.')
    : error(
        'settings.plain_http',
        'A provider is called without TLS: tokens and codes can be read on the way.',
        'Use https addresses in WHATSAPP_BASE_URL, TELEGRAM_BASE_URL and STRIPE_BASE_URL.',
      );
};

const checks: readonly Check[] = [
  ...[whatsapp, receipts, handshake, telegram, tap, totp, stripe, returnUrl],
  ...[openPlayground, siteKey, sharedKeys, ops, plain],
];

/** What is to be said of settings that can be read. */
export const judgeSettings = (config: Config): Finding[] => [
  ok('settings.sound', `All ${Object.keys(settings).length} settings can be read.`),
  ...checks.flatMap((check) => check(config) ?? []),
];

const names = Object.values(settings).map(({ env }) => env);

const misspeltFindings = (env: Record<string, string | undefined>): Finding[] =>
  misspelt(env, names).map(({ name, meant }) =>
    warning('settings.misspelt', `${name} is set, which is no setting.`, `Is ${meant} meant?`),
  );

/** Reads the settings; without them nothing else can be examined. */
export const examineSettings = (
  env: Record<string, string | undefined>,
): { config: Config | undefined; findings: Finding[] } => {
  try {
    const config = loadConfig(env);
    return { config, findings: [...judgeSettings(config), ...misspeltFindings(env)] };
  } catch (problem) {
    if (!(problem instanceof ConfigError)) throw problem;
    const mistakes = problem.message.split('\n').slice(1);
    const advice = 'docker/env.example and /docs/settings describe every variable.';
    const findings = mistakes.map((line) => error('settings.unusable', `${line.trim()}.`, advice));
    return { config: undefined, findings: [...findings, ...misspeltFindings(env)] };
  }
};
