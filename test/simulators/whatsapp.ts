// WhatsApp's Cloud API as far as a sender of codes meets it: messages, templates, and signed receipts.
import { createHmac, randomBytes } from 'node:crypto';
import { type GraphError, graphErrors, type Receipt, whatsappPlan } from './behaviours.ts';
import type { Deliveries } from './deliveries.ts';
import type { Phones } from './phones.ts';
import type { Answer } from './server.ts';
import type { Stats } from './stats.ts';
import { createTemplates, type Templates } from './templates.ts';

export type WhatsappSettings = {
  appSecret: string;
  accessToken: string;
  phoneNumberId: string;
  wabaId: string;
  verifyToken: string;
  templateName: string;
  templateLanguage: string;
};

type Json = Record<string, unknown>;
type Call = { method: string; path: string[]; query: URLSearchParams; token: string; body: Json };

export type WhatsappSim = {
  /** Serves a path behind /graph/{version}/. */
  serve(call: Call): Promise<Answer>;
  templates: Templates;
  close(): void;
};

const displayNumber = '15550783881';
const maxBatch = 500;
const hangMs = 60_000;

const errorAnswer = ({ status, code, title }: GraphError, details = title): Answer => ({
  status,
  json: {
    error: {
      message: `(#${code}) ${title}`,
      type: 'OAuthException',
      code,
      error_data: { messaging_product: 'whatsapp', details },
      fbtrace_id: randomBytes(8).toString('base64url'),
    },
  },
});

const graphError = (code: number, details?: string): Answer =>
  errorAnswer(graphErrors[code] ?? { status: 400, code, title: 'Error' }, details);

const knownFields = new Set([
  'messaging_product',
  'recipient_type',
  'to',
  'type',
  'template',
  'biz_opaque_callback_data',
]);

type TemplateBody = {
  name?: string;
  language?: { code?: string };
  components?: {
    type?: string;
    sub_type?: string;
    index?: unknown;
    parameters?: { text?: string }[];
  }[];
};

/** What Meta checks of a template message (reference 02 section 2); undefined when it is sound. */
const faultOf = (body: Json, templates: Templates): Answer | undefined => {
  const unknown = Object.keys(body).find((name) => !knownFields.has(name));
  if (unknown) return graphError(100, `Unexpected key "${unknown}"`);
  if (body.messaging_product !== 'whatsapp' || body.type !== 'template') return graphError(100);
  if (!/^\+?[1-9]\d{6,14}$/.test(String(body.to ?? ''))) return graphError(131009);
  if (String(body.to).replace('+', '') === displayNumber) return graphError(131021);
  const template = (body.template ?? {}) as TemplateBody;
  if (!templates.isApproved(template.name ?? '', template.language?.code ?? '')) {
    return graphError(132001);
  }
  const part = (type: string) => template.components?.find((component) => component.type === type);
  const text = part('body')?.parameters?.map((parameter) => parameter.text ?? '') ?? [];
  if (text.length !== 1) return graphError(132000);
  const button = part('button');
  if (
    button?.sub_type !== 'url' ||
    String(button.index) !== '0' ||
    button.parameters?.length !== 1
  ) {
    return graphError(132012);
  }
  return (text[0]?.length ?? 0) > 15 ? graphError(132005) : undefined;
};

type Due = { echo: string; id: string; to: string } & Receipt;

const statusOf = ({ echo, id, to, status, errorCode }: Due): Json => ({
  id,
  status,
  timestamp: String(Math.floor(Date.now() / 1000)),
  recipient_id: to,
  ...(echo === '' ? {} : { biz_opaque_callback_data: echo }),
  ...(status === 'sent' || status === 'delivered'
    ? {
        pricing: {
          billable: true,
          pricing_model: 'PMP',
          type: 'regular',
          category: 'authentication',
        },
      }
    : {}),
  ...(errorCode === undefined
    ? {}
    : {
        errors: [
          {
            code: errorCode,
            title: graphErrors[errorCode]?.title,
            message: graphErrors[errorCode]?.title,
            error_data: { details: 'Simulated.' },
          },
        ],
      }),
});

const createReceipts = (settings: WhatsappSettings, deliveries: Deliveries, batchMs: number) => {
  const due: Due[] = [];
  let timer: NodeJS.Timeout | undefined;
  const timers = new Set<NodeJS.Timeout>();

  const send = (changes: Json[]): void => {
    const body = Buffer.from(
      JSON.stringify({
        object: 'whatsapp_business_account',
        entry: [{ id: settings.wabaId, time: Math.floor(Date.now() / 1000), changes }],
      }),
    );
    const signature = createHmac('sha256', settings.appSecret).update(body).digest('hex');
    void deliveries.send(
      '/v1/inbound/whatsapp',
      { 'x-hub-signature-256': `sha256=${signature}` },
      body,
    );
  };

  const flush = (): void => {
    timer = undefined;
    const batch = due.splice(0, maxBatch);
    if (due.length > 0) timer = setTimeout(flush, 0);
    const metadata = {
      display_phone_number: displayNumber,
      phone_number_id: settings.phoneNumberId,
    };
    const value = { messaging_product: 'whatsapp', metadata, statuses: batch.map(statusOf) };
    send([{ field: 'messages', value }]);
  };

  const add = (receipt: Due): void => {
    due.push(receipt);
    timer ??= setTimeout(flush, batchMs);
  };

  return {
    send,
    /** Receipts leave one after the other, `delayMs` apart. */
    schedule: (receipts: Due[], delayMs: number): void => {
      receipts.forEach((receipt, index) => {
        if (delayMs === 0) {
          add(receipt);
          return;
        }
        const later = setTimeout(
          () => {
            timers.delete(later);
            add(receipt);
          },
          delayMs * (index + 1),
        );
        timers.add(later);
      });
    },
    close: () => {
      clearTimeout(timer);
      for (const one of timers) clearTimeout(one);
    },
  };
};

const hang = (timers: Set<NodeJS.Timeout>): Promise<Answer> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      resolve({ status: 504, json: {} });
    }, hangMs);
    timer.unref();
    timers.add(timer);
  });

const numberFields = (settings: WhatsappSettings) => ({
  id: settings.phoneNumberId,
  display_phone_number: `+${displayNumber}`,
  verified_name: 'Tessera Demo',
  quality_rating: 'GREEN',
  status: 'CONNECTED',
  throughput: { level: 'STANDARD' },
});

/** The simulated Cloud API. */
export const createWhatsappSim = (deps: {
  settings: WhatsappSettings;
  phones: Phones;
  stats: Stats;
  deliveries: Deliveries;
  statusBatchMs: number;
}): WhatsappSim => {
  const { settings, phones, stats } = deps;
  const receipts = createReceipts(settings, deps.deliveries, deps.statusBatchMs);
  const hanging = new Set<NodeJS.Timeout>();
  const templates = createTemplates(settings, (change) => receipts.send([change]));

  const answer = (kind: unknown, id: string, to: string): Promise<Answer> | Answer => {
    if (kind === 'accepted') {
      return {
        status: 200,
        json: {
          messaging_product: 'whatsapp',
          contacts: [{ input: to, wa_id: to }],
          messages: [{ id, message_status: 'accepted' }],
        },
      };
    }
    if (kind === 'hang') return hang(hanging);
    if (kind === 'cut') return { status: 0, json: {} };
    if (kind === 'html_502')
      return { status: 502, html: '<html><body>502 Bad Gateway</body></html>' };
    return errorAnswer(kind as GraphError);
  };

  const sendMessage = async (body: Json): Promise<Answer> => {
    const fault = faultOf(body, templates);
    if (fault) {
      stats.count('whatsapp', 'invalid');
      return fault;
    }
    const to = String(body.to).replace('+', '');
    const phone = `+${to}`;
    const { whatsapp, delayMs } = phones.behaviourOf(phone);
    const plan = whatsappPlan(whatsapp);
    if (!plan) return graphError(1);
    stats.count('whatsapp', whatsapp);
    const id = `wamid.${randomBytes(12).toString('base64url')}`;
    const echo = String(body.biz_opaque_callback_data ?? '');
    const code = (body.template as TemplateBody).components?.[0]?.parameters?.[0]?.text ?? null;
    const taken =
      typeof plan.answer === 'string' &&
      plan.answer !== 'html_502' &&
      (plan.delivers || plan.answer === 'accepted');
    if (taken) stats.accepted('whatsapp', echo);
    if (plan.delivers) {
      stats.delivered('whatsapp', echo);
      phones.receive(phone, {
        channel: 'whatsapp',
        code,
        text: `${code} is your verification code.`,
      });
    }
    const due = plan.receipts.map((receipt) => ({ ...receipt, echo, id, to }));
    receipts.schedule(due, delayMs);
    if (plan.early) await new Promise((resolve) => setTimeout(resolve, 150));
    return answer(plan.answer, id, to);
  };

  const serve = async ({ method, path, query, token, body }: Call): Promise<Answer> => {
    const [first, second] = path;
    if (first === 'oauth') return graphError(100, 'No code was issued.');
    if (token !== settings.accessToken) return graphError(190);
    const ours = first === settings.phoneNumberId || first === settings.wabaId;
    if (!ours) return graphError(100, 'Object does not exist');
    if (method === 'POST' && second === 'messages') return sendMessage(body);
    if (second === 'message_templates') return templates.serve(method, query, body);
    if (second === 'phone_numbers')
      return { status: 200, json: { data: [numberFields(settings)] } };
    if (second === 'register' || second === 'subscribed_apps')
      return { status: 200, json: { success: true } };
    if (method === 'GET' && !second) {
      const waba = { id: settings.wabaId, name: 'Tessera Demo', account_review_status: 'APPROVED' };
      return { status: 200, json: first === settings.wabaId ? waba : numberFields(settings) };
    }
    return graphError(100, 'Unsupported request');
  };

  return {
    serve,
    templates,
    close: () => {
      receipts.close();
      for (const timer of hanging) clearTimeout(timer);
    },
  };
};
