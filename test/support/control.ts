// The simulators' control API beyond what a phone's owner does: statuses by hand, and who was sent what how often.

import type { TestPhone } from './phones.ts';
import type { Customer } from './stack.ts';

/** Calls the control API of the simulators at `simUrl`; throws when it refuses. */
export const control = async <T>(
  simUrl: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> => {
  const answer = await fetch(simUrl + path, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as T;
};

const pathOf = ({ number }: TestPhone): string => `/phones/${encodeURIComponent(number)}`;

/** WhatsApp reports a status of the last message it took for the phone. */
export const report = (
  simUrl: string,
  phone: TestPhone,
  status: 'sent' | 'delivered' | 'read' | 'failed',
  code?: number,
): Promise<unknown> =>
  control(simUrl, 'POST', `${pathOf(phone)}/status`, {
    status,
    ...(code === undefined ? {} : { code }),
  });

/** The phone's owner does something in the chat with the bot. */
export const inChat = (
  simUrl: string,
  phone: TestPhone,
  what: 'block' | 'unblock' | 'repeat' | 'text' | 'contact',
  body: unknown = {},
): Promise<{ taken?: boolean }> =>
  control(simUrl, 'POST', `${pathOf(phone)}/telegram/${what}`, body);

/** How often WhatsApp accepted and delivered the message with this public id. */
export const countOf = async (
  simUrl: string,
  messageId: unknown,
): Promise<{ accepted: number; delivered: number }> => {
  const path = '/stats/messages';
  const { messages } = await control<{ messages: Record<string, [number, number]> }>(
    ...([simUrl, 'GET', path] as const),
  );
  const id = String(messageId).replace(/^otp_/, '');
  const [, [accepted, delivered] = [0, 0]] =
    Object.entries(messages).find(([echo]) => echo.startsWith(`${id}.`)) ?? [];
  return { accepted, delivered };
};

/** Links the phone's Telegram chat: issues a link, taps it, and shares the own number. */
export const linkTelegram = async (customer: Customer, phone: TestPhone): Promise<void> => {
  const issued = await customer.live.post('/v1/otp/telegram-link', { phone: phone.number });
  if (issued.status !== 200) throw new Error(`no link: ${issued.status} ${issued.text}`);
  await phone.tap(issued.data.telegram_bot_url);
};
