// The settings that say how providers are reached: WhatsApp, Telegram, the bot check.
import { integer, oneOf, text } from './schema.ts';
import { baseUrl, milliseconds, secret, setting } from './setting.ts';

export const providerSettings = {
  turnstileSecret: secret(
    'TURNSTILE_SECRET',
    text().allow('').default(''),
    'Secret of Cloudflare Turnstile. Empty: registering and the playground ask for no bot check.',
  ),
  turnstileSiteKey: setting(
    'TURNSTILE_SITE_KEY',
    text()
      .pattern(/^[\w.-]{1,100}$/)
      .allow('')
      .default(''),
    'Site key of Cloudflare Turnstile, which the page of the playground shows. Empty: it shows no bot check.',
  ),
  turnstileBaseUrl: setting(
    'TURNSTILE_BASE_URL',
    baseUrl('https://challenges.cloudflare.com'),
    'Address of Cloudflare Turnstile.',
  ),

  stripeSecretKey: secret(
    'STRIPE_SECRET_KEY',
    text().allow('').default(''),
    'Secret key of Stripe. Empty: deposits are booked by operators alone.',
  ),
  stripeWebhookSecret: secret(
    'STRIPE_WEBHOOK_SECRET',
    text().allow('').default(''),
    'Secret that signs the webhooks of Stripe. Empty: they are refused.',
  ),
  stripeBaseUrl: setting(
    'STRIPE_BASE_URL',
    baseUrl('https://api.stripe.com'),
    'Address of the Stripe API.',
  ),
  depositReturnUrl: setting(
    'DEPOSIT_RETURN_URL',
    baseUrl('https://example.com/'),
    'Where Stripe sends people back to from its checkout.',
  ),

  whatsappBaseUrl: setting(
    'WHATSAPP_BASE_URL',
    baseUrl('https://graph.facebook.com'),
    'Address of the WhatsApp Cloud API.',
  ),
  whatsappApiVersion: setting(
    'WHATSAPP_API_VERSION',
    text()
      .pattern(/^v\d{1,3}\.\d$/)
      .default('v25.0'),
    'Version of the Graph API.',
  ),
  whatsappPhoneNumberId: setting(
    'WHATSAPP_PHONE_NUMBER_ID',
    text()
      .pattern(/^\d{1,20}$/)
      .allow('')
      .default(''),
    'Id of the shared sending number. Empty: there is none.',
  ),
  whatsappWabaId: setting(
    'WHATSAPP_WABA_ID',
    text()
      .pattern(/^\d{1,20}$/)
      .allow('')
      .default(''),
    'Id of the WhatsApp Business account of the shared number.',
  ),
  whatsappAccessToken: secret(
    'WHATSAPP_ACCESS_TOKEN',
    text().allow('').default(''),
    'Access token of the shared number.',
  ),
  whatsappAppId: setting(
    'WHATSAPP_APP_ID',
    text()
      .pattern(/^\d{1,20}$/)
      .allow('')
      .default(''),
    'Id of the Meta app that customers connect their own numbers to. Empty: Embedded Signup is not offered.',
  ),
  whatsappAppSecret: secret(
    'WHATSAPP_APP_SECRET',
    text().allow('').default(''),
    'App secret that signs inbound WhatsApp webhooks and exchanges signup codes. Empty: webhooks are refused.',
  ),
  whatsappVerifyToken: secret(
    'WHATSAPP_VERIFY_TOKEN',
    text().allow('').default(''),
    'Token of the WhatsApp webhook handshake. Empty: it is refused.',
  ),
  whatsappTemplateName: setting(
    'WHATSAPP_TEMPLATE_NAME',
    text()
      .pattern(/^[a-z0-9_]{1,512}$/)
      .default('otp_code'),
    'Name of the authentication template.',
  ),
  whatsappTemplateLanguage: setting(
    'WHATSAPP_TEMPLATE_LANGUAGE',
    text()
      .pattern(/^[a-z]{2}(_[A-Z]{2})?$/)
      .default('en_US'),
    'Language of the template on the shared number.',
  ),
  whatsappTimeoutMs: setting(
    'WHATSAPP_TIMEOUT_MS',
    milliseconds(100, 30_000, 5_000),
    'How long one call to WhatsApp may take.',
  ),
  whatsappEchoWaitMs: setting(
    'WHATSAPP_ECHO_WAIT_MS',
    milliseconds(0, 30_000, 3_000),
    'How long to wait for WhatsApp to echo a message whose call had no answer, before it counts as not sent.',
  ),
  whatsappDeliverySeconds: setting(
    'WHATSAPP_DELIVERY_SECONDS',
    integer().min(1).max(900).default(60),
    'Lifetime of the template: without a receipt by then the message falls back or fails. Set message_send_ttl_seconds of the template to the same.',
  ),

  telegramBaseUrl: setting(
    'TELEGRAM_BASE_URL',
    baseUrl('https://api.telegram.org'),
    'Address of the Telegram Bot API.',
  ),
  telegramBotToken: secret(
    'TELEGRAM_BOT_TOKEN',
    text().allow('').default(''),
    'Token of the bot. Empty: there is no fallback channel.',
  ),
  telegramBotUsername: setting(
    'TELEGRAM_BOT_USERNAME',
    text()
      .pattern(/^\w{5,32}$/)
      .allow('')
      .default(''),
    'Username of the bot, without the @.',
  ),
  telegramWebhookSecret: secret(
    'TELEGRAM_WEBHOOK_SECRET',
    text()
      .pattern(/^[\w-]{1,256}$/)
      .allow('')
      .default(''),
    'Secret token of inbound Telegram updates. Empty: they are refused.',
  ),
  telegramLinkProof: setting(
    'TELEGRAM_LINK_PROOF',
    oneOf('contact', 'tap').default('contact'),
    'contact: a link counts only after the recipient shared the own number. tap: pressing Start is enough, and whoever sees the link can take over the verification.',
  ),
  telegramTimeoutMs: setting(
    'TELEGRAM_TIMEOUT_MS',
    milliseconds(100, 30_000, 4_000),
    'How long one call to Telegram may take.',
  ),
} as const;
