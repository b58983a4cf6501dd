// The shared WhatsApp number: its token, its state, its template, and whether its receipts reach anybody.
import { child, parseObject } from '../channels/channel.ts';
import { createWhatsappManagement, GraphFailure } from '../channels/whatsapp-management.ts';
import type { Config } from '../kernel/config.ts';
import { describeError } from '../kernel/redact.ts';
import type { ProviderDeps } from './providers.ts';
import { type Finding, findingsOf } from './rules.ts';

const onWhatsapp = findingsOf('WhatsApp');

const authFailed = 190;

const graphFinding = (problem: GraphFailure): Finding => {
  const { code, step } = problem.refusal;
  const { error } = onWhatsapp;
  if (code === null) {
    const text = `WhatsApp does not answer (${step}).`;
    return error('whatsapp.away', text, 'See whether this machine reaches WHATSAPP_BASE_URL.');
  }
  if (code === authFailed) {
    const text = 'WhatsApp does not take WHATSAPP_ACCESS_TOKEN.';
    return error(
      'whatsapp.token',
      text,
      'Make a new token of a system user with full control of the account.',
    );
  }
  const text = `WhatsApp refuses ${step} (code ${code}).`;
  const advice =
    'See whether WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_WABA_ID are those the token is for.';
  return error('whatsapp.refused', text, advice);
};

const judgeTemplate = (
  { whatsappTemplateName: name, whatsappTemplateLanguage: language }: Config,
  found: { language: string; status: string } | undefined,
): Finding => {
  const called = `The template ${name} (${language})`;
  if (!found) {
    const advice = 'Make it in WhatsApp Manager: category authentication, with a copy button.';
    return onWhatsapp.error('whatsapp.no_template', `${called} does not exist.`, advice);
  }
  if (found.status.toUpperCase() === 'APPROVED') {
    return onWhatsapp.ok('whatsapp.template', `${called} is approved.`);
  }
  const advice = 'Until it is approved sends answer TEMPLATE_NOT_READY; WhatsApp Manager says why.';
  return onWhatsapp.error(
    'whatsapp.template_state',
    `${called} is ${found.status.toLowerCase()}.`,
    advice,
  );
};

const judgeNumber = ({
  status,
  qualityRating,
}: {
  status: string;
  qualityRating: string;
}): Finding[] => {
  const advice = 'WhatsApp Manager says what to do about the number.';
  return [
    status === 'CONNECTED'
      ? onWhatsapp.ok('whatsapp.number', 'The shared number is connected.')
      : onWhatsapp.error(
          'whatsapp.number_state',
          `The shared number is ${status.toLowerCase()}.`,
          advice,
        ),
    ...(qualityRating === 'RED'
      ? [
          onWhatsapp.warning(
            'whatsapp.quality',
            'The shared number has a red quality rating: WhatsApp may lower its limit.',
            advice,
          ),
        ]
      : []),
  ];
};

const appIdOf = (app: unknown): string =>
  String(child(app as Record<string, unknown>, 'whatsapp_business_api_data')?.id);

/** Whether our app hears of the account: without one receipts reach nobody. */
const examineSubscription = async ({ http, config }: ProviderDeps): Promise<Finding> => {
  const { whatsappBaseUrl: base, whatsappApiVersion: version, whatsappWabaId: waba } = config;
  const ours = config.whatsappAppId;
  const { text } = await http.send({
    method: 'GET',
    url: `${base}/${version}/${waba}/subscribed_apps`,
    headers: { authorization: `Bearer ${config.whatsappAccessToken}` },
  });
  const apps = parseObject(text)?.data;
  const ids = Array.isArray(apps) ? apps.map(appIdOf) : [];
  const advice =
    'Subscribe the Meta app to the account: POST /<waba id>/subscribed_apps, with a token of that app.';
  if (ids.length > 0 && (ours === '' || ids.includes(ours))) {
    return onWhatsapp.ok('whatsapp.subscribed', 'An app is subscribed to the account.');
  }
  if (ids.length > 0) {
    return onWhatsapp.error(
      'whatsapp.other_app',
      'Another app than WHATSAPP_APP_ID is subscribed to the account: receipts reach that one.',
      advice,
    );
  }
  return onWhatsapp.error(
    'whatsapp.unsubscribed',
    'No app is subscribed to the account: receipts reach nobody.',
    advice,
  );
};

/** The shared number: token, state, template, subscription. */
export const examineWhatsapp = async (deps: ProviderDeps): Promise<Finding[]> => {
  const { http, config } = deps;
  const {
    whatsappPhoneNumberId: number,
    whatsappAccessToken: token,
    whatsappWabaId: waba,
  } = config;
  if (number === '' || token === '') return [];
  const management = createWhatsappManagement({
    ...{ http, baseUrl: config.whatsappBaseUrl, apiVersion: config.whatsappApiVersion },
    ...{ appId: config.whatsappAppId, appSecret: config.whatsappAppSecret },
  });
  try {
    const ofNumber = judgeNumber(await management.readNumber(token, number));
    if (waba === '') {
      const text = 'WHATSAPP_WABA_ID is empty: template and subscription cannot be checked.';
      return [...ofNumber, onWhatsapp.warning('whatsapp.no_waba', text, 'Set it.')];
    }
    const templates = await management.listTemplates(token, waba, config.whatsappTemplateName);
    const template = templates.find(({ language }) => language === config.whatsappTemplateLanguage);
    return [...ofNumber, judgeTemplate(config, template), await examineSubscription(deps)];
  } catch (problem) {
    if (problem instanceof GraphFailure) return [graphFinding(problem)];
    const text = `WhatsApp does not answer: ${describeError(problem)}.`;
    return [
      onWhatsapp.error(
        'whatsapp.away',
        text,
        'See whether this machine reaches WHATSAPP_BASE_URL.',
      ),
    ];
  }
};
