// Carries out one WhatsApp message as its recipient's behaviour says: answer, arrival and status webhooks.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { findWhatsAppPlan } from './behaviours.ts';
import type { Timers } from './clock.ts';
import { sendJson } from './http.ts';
import type { Phones, SentMessage } from './phones.ts';
import { type WhatsAppPlan, whatsappPlans } from './plans.ts';
import type { Stats } from './stats.ts';
import { graphError } from './whatsapp-errors.ts';
import type { ValidMessage } from './whatsapp-messages.ts';
import type { WhatsAppWebhooks } from './whatsapp-webhooks.ts';

/** How long a `timeout` keeps the caller waiting. */
const holdMs = 60_000;

const proxyPage =
  '<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>';

/** Answers as a proxy in front of a provider would. */
export const sendProxyPage = (response: ServerResponse): void => {
  response.writeHead(502, { 'content-type': 'text/html' }).end(proxyPage);
};

export type WhatsAppSend = (given: {
  request: IncomingMessage;
  response: ServerResponse;
  message: ValidMessage;
  phoneNumberId: string;
}) => void;

/** Creates the sender. With `autoDeliver` false an `ok` phone gets its message, but no status is reported. */
export const createWhatsAppSend = (deps: {
  phones: Phones;
  stats: Stats;
  webhooks: WhatsAppWebhooks;
  timers: Timers;
  headers: Record<string, string>;
  autoDeliver: boolean;
}): WhatsAppSend => {
  const { phones, stats, webhooks, timers } = deps;
  const boot = randomBytes(6).toString('hex').toUpperCase();
  const failsLater = findWhatsAppPlan('failed:131047');
  const quiet: WhatsAppPlan | undefined = whatsappPlans.ok && { ...whatsappPlans.ok, steps: [] };
  let serial = 0;

  const newWamid = (phone: string): string => {
    serial += 1;
    return `wamid.HBgL${Buffer.from(`${phone}${boot}${serial}`).toString('base64')}`;
  };

  const arrive = (message: ValidMessage, phoneNumberId: string) => {
    const code = message.code || null;
    const { text } = message;
    phones.add(message.phone, { channel: 'whatsapp', by: 'service', code, text, phoneNumberId });
    stats.delivered('whatsapp', message.echo);
    stats.note('whatsapp', 'delivered');
  };

  const later = (ms: number, run: () => void) => (ms > 0 ? timers.after(ms, run) : run());

  const report = (plan: WhatsAppPlan, sent: SentMessage, delayMs: number) => {
    for (const { status, code, late, times = 1 } of plan.steps) {
      later(late ? delayMs : 0, () => {
        for (let time = 0; time < times; time += 1)
          webhooks.status({ message: sent, status, code });
        if (status === 'failed') stats.note('whatsapp', `failed_${code}`);
      });
    }
  };

  const accept = (
    plan: WhatsAppPlan,
    sent: SentMessage,
    message: ValidMessage,
    delayMs: number,
  ) => {
    stats.accepted('whatsapp', message.echo);
    stats.note('whatsapp', 'accepted');
    phones.open(message.phone).lastSent = sent;
    const lateArrival = plan.steps.some(
      ({ status, late }) => late && (status === 'delivered' || status === 'read'),
    );
    if (plan.arrives) later(lateArrival ? delayMs : 0, () => arrive(message, sent.phoneNumberId));
    report(plan, sent, delayMs);
  };

  const success = (sent: SentMessage, plan: WhatsAppPlan) => ({
    messaging_product: 'whatsapp',
    contacts: [{ input: sent.phone.slice(1), wa_id: sent.phone.slice(1) }],
    messages: [{ id: sent.wamid, message_status: plan.messageStatus ?? 'accepted' }],
  });

  const answer = (
    plan: WhatsAppPlan,
    sent: SentMessage,
    to: { request: IncomingMessage; response: ServerResponse },
    delayMs: number | undefined,
  ) => {
    const { response } = to;
    if (plan.answer === 'ok') {
      const give = () => sendJson(response, 200, success(sent, plan), deps.headers);
      const waitMs = delayMs ?? plan.standardDelayMs ?? 0;
      if (plan.answerLast) void Promise.race([webhooks.settled(), timers.wait(waitMs)]).then(give);
      else later(plan.slowAnswer ? waitMs : 0, give);
    } else if (plan.answer === 'error') {
      stats.note('whatsapp', `error_${plan.error}`);
      const { http, body } = graphError(plan.error ?? 131000, { details: plan.about });
      sendJson(response, http, body, deps.headers);
    } else if (plan.answer === 'html_502') {
      stats.note('whatsapp', 'html_502');
      sendProxyPage(response);
    } else if (plan.answer === 'cut') {
      stats.note('whatsapp', 'cut');
      to.request.socket.destroy();
    } else {
      stats.note('whatsapp', 'timeout');
      timers.after(delayMs ?? holdMs, () => to.request.socket.destroy());
    }
  };

  return ({ request, response, message, phoneNumberId }) => {
    const { whatsapp, delayMs } = phones.behaviour(message.phone);
    const named = message.windowClosed ? failsLater : findWhatsAppPlan(whatsapp);
    const scripted = named ?? whatsappPlans.ok;
    const plan = !deps.autoDeliver && scripted === whatsappPlans.ok ? quiet : scripted;
    if (!plan) return;
    const sent = {
      wamid: newWamid(message.phone),
      phone: message.phone,
      phoneNumberId,
      echo: message.echo,
      category: plan.category ?? 'authentication',
    };
    if (plan.accepted) accept(plan, sent, message, delayMs ?? plan.standardDelayMs ?? 0);
    answer(plan, sent, { request, response }, delayMs ?? undefined);
  };
};
