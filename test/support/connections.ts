// Own WhatsApp numbers for tests: businesses at the simulated provider, faults of its management calls, captured events.
import type { ExecutionContext } from 'ava';
import type { EventWire } from '../../lib/jobs.ts';
import type { Answer, Client } from './client.ts';
import { control } from './control.ts';
import type { Customer, Stack } from './stack.ts';

export type Business = {
  waba_id: string;
  phone_number_id: string;
  display_phone_number: string;
  access_token: string;
  code: string;
};

/** A business with one number at the simulated provider. */
export const aBusiness = (stack: Stack, given: Record<string, unknown> = {}): Promise<Business> =>
  control(stack.sim.url, 'POST', '/businesses', { registered: true, ...given });

/** A fresh code of Embedded Signup. */
export const aCode = async (stack: Stack, { waba_id: waba }: Business): Promise<string> =>
  (await control<{ code: string }>(stack.sim.url, 'POST', `/businesses/${waba}/code`)).code;

export type Fault = {
  call: string;
  answer?: 'error' | 'html_502' | 'hold' | 'cut' | 'empty' | null;
  code?: number;
  subcode?: number;
  takes_effect?: boolean;
  times?: number;
};

/** Lets a management call fail; `answer: null` ends it. */
export const fault = (stack: Stack, ...faults: Fault[]): Promise<unknown> =>
  control(stack.sim.url, 'PUT', '/management/faults', { faults });

/** Changes all templates of the business called otp_code, with the webhook that goes with it. */
export const flipTemplate = (
  stack: Stack,
  { waba_id }: Business,
  event: string,
): Promise<unknown> =>
  control(stack.sim.url, 'POST', '/templates/otp_code/status', { waba_id, event });

export const connect = (by: Client, business: Business, more: Record<string, unknown> = {}) =>
  by.post('/v1/clients/connect-whatsapp', {
    phone_number_id: business.phone_number_id,
    waba_id: business.waba_id,
    access_token: business.access_token,
    ...more,
  });

export const signUp = (by: Client, business: Business, code: string) =>
  by.post('/v1/clients/waba/embedded-signup', {
    ...{ code, waba_id: business.waba_id, phone_number_id: business.phone_number_id },
  });

export type Connection = Record<string, unknown> & { template: Record<string, unknown> };

/** What the account sees of its connection. */
export const detailsOf = async (customer: Customer): Promise<Connection | null> =>
  (await customer.live.get('/v1/clients/waba/details')).data.connection as Connection | null;

/** The number the newest message on the phone came from. */
export const senderOf = async (phone: {
  messages(): Promise<{ phone_number_id?: string }[]>;
}): Promise<string | undefined> => (await phone.messages())[0]?.phone_number_id;

/** Collects the account events that API and workers of the stack announce from now on. */
export const captureEvents = (stack: Stack): EventWire[] => {
  const seen: EventWire[] = [];
  for (const { announcer } of [stack.api, stack.worker]) {
    const { announce } = announcer;
    announcer.announce = (event) => {
      if (/^(whatsapp|template)\./.test(event.type)) seen.push(event);
      return announce(event);
    };
  }
  return seen;
};

/** A VALIDATION_ERROR about that one field. */
export const isRefused = (
  t: ExecutionContext,
  answer: Answer,
  field: string,
  issue?: RegExp,
): void => {
  t.is(answer.error.code, 'VALIDATION_ERROR', answer.text);
  const details = answer.error.details as { field: string; issue: string }[];
  t.deepEqual(
    details.map((one) => one.field),
    [field],
    answer.text,
  );
  if (issue) t.regex(details[0]?.issue ?? '', issue);
};

/** The provider could not be asked. */
export const isUnavailable = (t: ExecutionContext, answer: Answer): void => {
  t.is(answer.status, 503, answer.text);
  t.is(answer.error.code, 'SERVICE_UNAVAILABLE');
  t.is(answer.headers.get('retry-after'), '30');
};
