// Our app at Meta: whether its secret is right, and whether it delivers to this service what we need to hear.
import { parseObject } from '../channels/channel.ts';
import type { ProviderDeps } from './providers.ts';
import { type Finding, findingsOf } from './rules.ts';

const { ok, warning, error } = findingsOf('WhatsApp');

type Json = Record<string, unknown>;

const inboundPath = '/v1/inbound/whatsapp';

/** Without receipts no message is ever delivered; without the others an own number's troubles are seen late. */
const wantedFields = [
  ...['messages', 'message_template_status_update'],
  ...['phone_number_quality_update', 'account_update'],
];

const advice = `Set the callback of the app's WhatsApp settings to https://<your host>${inboundPath} with WHATSAPP_VERIFY_TOKEN; /docs/whatsapp says how.`;

const judgeFields = (subscription: Json): Finding[] => {
  const fields = Array.isArray(subscription.fields) ? (subscription.fields as Json[]) : [];
  const heard = fields.map(({ name }) => String(name));
  const missing = wantedFields.filter((name) => !heard.includes(name));
  if (missing.length === 0) return [];
  const text = `The Meta app does not subscribe to ${missing.join(', ')}.`;
  const remedy = "Subscribe to them under Webhooks in the app's settings.";
  return missing.includes('messages')
    ? [error('whatsapp.fields', `${text} Without messages there are no receipts.`, remedy)]
    : [warning('whatsapp.fields', text, remedy)];
};

const judgeSubscription = (subscription: Json | undefined): Finding[] => {
  if (!subscription || subscription.active === false) {
    const text = 'The Meta app has no callback for WhatsApp: receipts reach nobody.';
    return [error('whatsapp.no_callback', text, advice)];
  }
  const url = URL.parse(String(subscription.callback_url ?? ''));
  if (!url?.pathname.endsWith(inboundPath)) {
    const text = `The Meta app calls another address (${url?.host ?? 'none'}).`;
    return [error('whatsapp.elsewhere', text, advice)];
  }
  const flaws = judgeFields(subscription);
  return flaws.length > 0 ? flaws : [ok('whatsapp.callback', `Meta calls ${url.host}.`)];
};

/** Looks at the app with its own token; `address` is where it calls. */
export const examineMetaApp = async ({
  http,
  config,
}: ProviderDeps): Promise<{ findings: Finding[]; address: string | undefined }> => {
  const { whatsappAppId: id, whatsappAppSecret: secret, whatsappPhoneNumberId: number } = config;
  const nothing = { findings: [], address: undefined };
  if (number === '' || secret === '') return nothing;
  if (id === '') {
    const text = 'WHATSAPP_APP_ID is empty: whether receipts come here cannot be checked.';
    return { ...nothing, findings: [warning('whatsapp.no_app_id', text, 'Set it.')] };
  }
  const request = {
    method: 'GET',
    url: `${config.whatsappBaseUrl}/${config.whatsappApiVersion}/${id}/subscriptions`,
    headers: { authorization: `Bearer ${id}|${secret}` },
  } as const;
  // When Graph does not answer, the look at the number says so.
  const body = parseObject((await http.send(request).catch(() => undefined))?.text ?? '');
  if (body?.error !== undefined) {
    const text =
      'Meta does not take WHATSAPP_APP_ID with WHATSAPP_APP_SECRET: receipts signed with another secret are refused.';
    const remedy = "Copy both from the app's basic settings.";
    return { ...nothing, findings: [error('whatsapp.app', text, remedy)] };
  }
  if (!Array.isArray(body?.data)) return nothing;
  const found = (body.data as Json[]).find(({ object }) => object === 'whatsapp_business_account');
  const url = String(found?.callback_url ?? '');
  const address = URL.parse(url)?.pathname.endsWith(inboundPath) ? url : undefined;
  return { findings: judgeSubscription(found), address };
};
