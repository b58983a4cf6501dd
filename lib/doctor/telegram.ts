// The Telegram bot: its token and name, and whether its updates reach us.
import { child, parseObject } from '../channels/channel.ts';
import { second } from '../kernel/clock.ts';
import { redact } from '../kernel/redact.ts';
import type { ProviderDeps } from './providers.ts';
import { type Finding, findingsOf, freshNewsMs } from './rules.ts';

const onTelegram = findingsOf('Telegram');

type Json = Record<string, unknown>;

/** What a method of the bot answers; undefined when the token is not taken. */
const askBot = async (
  { http, config }: ProviderDeps,
  method: string,
): Promise<Json | undefined> => {
  const url = `${config.telegramBaseUrl}/bot${config.telegramBotToken}/${method}`;
  const { text } = await http.send({ method: 'GET', url });
  const body = parseObject(text);
  if (!body) throw new Error('no answer of the Bot API');
  return body.ok === true ? child(body, 'result') : undefined;
};

const inboundPath = '/v1/inbound/telegram';
const pendingMany = 100;

const judgeHook = (hook: Json, now: number): Finding[] => {
  const { warning, error, ok } = onTelegram;
  const url = typeof hook.url === 'string' ? hook.url : '';
  const advice =
    'Call setWebhook with the public address, /v1/inbound/telegram and TELEGRAM_WEBHOOK_SECRET; /docs/telegram says how.';
  if (url === '') {
    return [
      error(
        'telegram.no_webhook',
        'Telegram does not know where to call: nobody can link.',
        advice,
      ),
    ];
  }
  if (!url.endsWith(inboundPath)) {
    return [
      error('telegram.elsewhere', `Telegram calls another address (${new URL(url).host}).`, advice),
    ];
  }
  const failedAt = Number(hook.last_error_date ?? 0) * second;
  if (failedAt > 0 && now - failedAt < freshNewsMs) {
    const text = `Telegram could not deliver updates lately: ${redact(String(hook.last_error_message ?? 'no reason given'))}.`;
    return [
      error(
        'telegram.undelivered',
        text,
        'A 403 there means that its secret is not TELEGRAM_WEBHOOK_SECRET: call setWebhook again.',
      ),
    ];
  }
  const pending = Number(hook.pending_update_count ?? 0);
  return pending > pendingMany
    ? [
        warning(
          'telegram.pending',
          `${pending} updates wait at Telegram.`,
          'See whether the API answers it.',
        ),
      ]
    : [ok('telegram.webhook', 'Telegram delivers its updates.')];
};

type Examined = { findings: Finding[]; address?: string | undefined };

/** The bot: token, name, webhook; `address` is what Telegram calls, when it calls us. */
export const examineTelegram = async (deps: ProviderDeps): Promise<Examined> => {
  const { config, clock } = deps;
  if (config.telegramBotToken === '') return { findings: [] };
  const { ok, error } = onTelegram;
  try {
    const me = await askBot(deps, 'getMe');
    if (!me) {
      const text = 'Telegram does not take TELEGRAM_BOT_TOKEN.';
      const advice = 'Ask @BotFather for the token of the bot.';
      return { findings: [error('telegram.token', text, advice)] };
    }
    const named =
      me.username === config.telegramBotUsername
        ? ok('telegram.bot', `The bot is @${me.username}.`)
        : error(
            'telegram.name',
            `The bot is @${me.username}, and TELEGRAM_BOT_USERNAME says @${config.telegramBotUsername}: links lead elsewhere.`,
            `Set it to ${me.username}.`,
          );
    const hook = (await askBot(deps, 'getWebhookInfo')) ?? {};
    const url = String(hook.url ?? '');
    const address = URL.parse(url)?.pathname.endsWith(inboundPath) ? url : undefined;
    return { findings: [named, ...judgeHook(hook, clock.now())], address };
  } catch {
    // What failed holds the address, which holds the token.
    const advice = 'See whether this machine reaches TELEGRAM_BASE_URL.';
    return { findings: [error('telegram.away', 'Telegram does not answer.', advice)] };
  }
};
