// The WhatsApp Cloud API: sends a code by the authentication template, and reads what its webhooks say.
import type { Http, HttpAnswer } from '../infra/http.ts';
import { ask, type ChannelResult, child, parseObject } from './channel.ts';
import { classifyWhatsappError } from './whatsapp-errors.ts';

/** The number a code is sent from, and the template it is sent with. */
export type WhatsappSender = {
  phoneNumberId: string;
  accessToken: string;
  templateName: string;
  templateLanguage: string;
};

export type WhatsappSend = {
  sender: WhatsappSender;
  phone: string;
  code: string;
  /** Echoed in every receipt of this message: the only handle that survives a lost answer. */
  echo: string;
};

/** The template message with copy-code button (reference 02 section 2): the code goes in twice. */
const templateMessage = ({ sender, phone, code, echo }: WhatsappSend) => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to: phone.slice(1),
  type: 'template',
  biz_opaque_callback_data: echo,
  template: {
    name: sender.templateName,
    language: { code: sender.templateLanguage },
    components: [
      { type: 'body', parameters: [{ type: 'text', text: code }] },
      { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: code }] },
    ],
  },
});

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;

const readAccepted = (body: Record<string, unknown>): ChannelResult => {
  const [first] = Array.isArray(body.messages) ? (body.messages as { id?: unknown }[]) : [];
  return typeof first?.id === 'string'
    ? { kind: 'accepted', providerId: first.id }
    : { kind: 'unknown', detail: 'success without a message id' };
};

const readAnswer = ({ status, text }: HttpAnswer): ChannelResult => {
  const body = parseObject(text);
  const error = child(body, 'error');
  const code = numberOf(error?.code);
  if (error && code !== undefined) {
    const refusal = classifyWhatsappError({
      code,
      subcode: numberOf(error.error_subcode),
      transient: error.is_transient === true,
    });
    return { kind: 'refused', refusal, code };
  }
  if (status >= 200 && status < 300 && body) return readAccepted(body);
  // A proxy's page or an empty body: the request may have gone through before something failed.
  return { kind: 'unknown', detail: `HTTP ${status} without a Graph answer` };
};

export type WhatsappChannel = { send(message: WhatsappSend): Promise<ChannelResult> };

/** The Cloud API at `baseUrl`, version `apiVersion`. Calls never throw: what failed is in the result. */
export const createWhatsapp = (options: {
  http: Http;
  baseUrl: string;
  apiVersion: string;
}): WhatsappChannel => ({
  send: (message) => {
    const { phoneNumberId, accessToken } = message.sender;
    const request = {
      method: 'POST',
      url: `${options.baseUrl}/${options.apiVersion}/${phoneNumberId}/messages`,
      headers: { authorization: `Bearer ${accessToken}` },
      json: templateMessage(message),
    } as const;
    return ask(options.http, request, readAnswer);
  },
});
