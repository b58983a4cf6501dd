// Zitadel's HTTP SMS provider: Zitadel makes and checks the codes, Tessera brings them to WhatsApp or Telegram.
// Payload: https://zitadel.com/docs/guides/manage/customize/notification-providers
// Signature: https://zitadel.com/docs/guides/integrate/actions/testing-request-signature
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Deliver, e164 } from '../deliver/deliver.ts';
import {
  deliverFromEnvironment,
  type Handler,
  notACode,
  refuse,
  serve,
  settings,
} from '../deliver/serve.ts';

export type ProviderOptions = {
  deliver: Deliver;
  /** The signingKey of the answer that added the provider. */
  signingKey: string;
};

type Notification = {
  contextInfo?: { recipientPhoneNumber?: string; eventType?: string };
  /** `code` to verify a phone or reset a password, `oTP` as second factor. */
  args?: { code?: string; oTP?: string };
};

const toleranceSeconds = 300;

/**
 * Whether `header` (t=<unix seconds>,v1=<hex>[,v1=<hex>]) has an HMAC-SHA256 of time, dot and raw body by
 * `signingKey` that is at most five minutes old.
 */
export const isSigned = (body: string, header: string, signingKey: string): boolean => {
  const parts = header.split(',').map((part) => part.trim().split('='));
  const time = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!/^\d+$/.test(time)) return false;
  if (Math.abs(Date.now() / 1000 - Number(time)) > toleranceSeconds) return false;
  const expected = createHmac('sha256', signingKey).update(`${time}.${body}`).digest();
  return parts
    .filter(([name]) => name === 'v1')
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
};

/** The provider's endpoint: 2xx when a channel took the code; Zitadel tries anything else again. */
export const createProvider =
  ({ deliver, signingKey }: ProviderOptions): Handler =>
  async (request) => {
    const body = await request.text();
    const signature = request.headers.get('zitadel-signature') ?? '';
    if (!isSigned(body, signature, signingKey)) return new Response(null, { status: 401 });
    const { contextInfo, args } = JSON.parse(body) as Notification;
    const phone = contextInfo?.recipientPhoneNumber;
    const code = args?.code ?? args?.oTP;
    if (!phone || !code) return notACode(contextInfo?.eventType);
    const outcome = await deliver({ phone: e164(phone), code, request: body });
    return outcome.sent ? new Response(null, { status: 204 }) : refuse(outcome.refusal);
  };

if (import.meta.main) {
  const { ZITADEL_SIGNING_KEY: signingKey } = settings('ZITADEL_SIGNING_KEY');
  // Zitadel waits for five seconds.
  serve(createProvider({ deliver: deliverFromEnvironment(4_500), signingKey }));
}
