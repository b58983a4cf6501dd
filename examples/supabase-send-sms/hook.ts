// Supabase's send-SMS hook over HTTP: Supabase makes and checks the codes, Tessera brings them to WhatsApp or Telegram.
// Payload: https://supabase.com/docs/guides/auth/auth-hooks/send-sms-hook
// Signature, errors and retries: https://supabase.com/docs/guides/auth/auth-hooks
import { Webhook } from 'standardwebhooks';
import { type Deliver, e164, type Refusal } from '../deliver/deliver.ts';
import { deliverFromEnvironment, type Handler, serve, settings } from '../deliver/serve.ts';

export type HookOptions = {
  deliver: Deliver;
  /** As Supabase shows it: v1,whsec_… */
  secret: string;
};

type SendSms = {
  user?: { phone?: string };
  /** `phone` is there since Auth 2.180: the number to confirm or of the factor, which need not be the user's. */
  sms?: { otp?: string; phone?: string };
};

/** Supabase passes this message on to the person signing in. */
const messageFor = ({ remedy, telegramUrl }: Refusal): string => {
  if (telegramUrl !== undefined) return `Open ${telegramUrl} to get codes over Telegram.`;
  if (remedy === 'recipient') return 'This number cannot be reached.';
  return remedy === 'wait' ? 'Too many codes. Try again later.' : 'The code could not be sent.';
};

const httpCodeFor = { recipient: 422, wait: 429, operator: 500 } as const;

// Supabase reads an error in the answer only when its status is 200; it tries 503 with a retry-after
// again, at once and within the five seconds there are, which would not outlast a limit.
const refuse = (refusal: Refusal): Response => {
  const message = messageFor(refusal);
  if (refusal.remedy === 'again') {
    const headers = { 'retry-after': 'true' };
    return Response.json({ error: { http_code: 503, message } }, { status: 503, headers });
  }
  return Response.json({ error: { http_code: httpCodeFor[refusal.remedy], message } });
};

const invalid = (status: number, message: string): Response =>
  Response.json({ error: { http_code: status, message } }, { status });

/** The hook's handler; also fit for `Deno.serve` in an Edge Function. */
export const createSendSmsHook = ({ deliver, secret }: HookOptions): Handler => {
  const webhook = new Webhook(secret.replace(/^v1,/, ''));

  const read = (body: string, headers: Headers): SendSms | undefined => {
    try {
      return webhook.verify(body, Object.fromEntries(headers)) as SendSms;
    } catch {
      return undefined;
    }
  };

  return async (request) => {
    const body = await request.text();
    const hook = read(body, request.headers);
    if (!hook) return invalid(401, 'The request is not signed with the secret of the hook.');
    const phone = hook.sms?.phone || hook.user?.phone;
    const code = hook.sms?.otp;
    if (!phone || !code) return invalid(400, 'The request has no phone or no code.');
    // The body is the same in every retry; webhook-id is not.
    const outcome = await deliver({ phone: e164(phone), code, request: body });
    return outcome.sent ? Response.json({}) : refuse(outcome.refusal);
  };
};

if (import.meta.main) {
  const { SEND_SMS_HOOK_SECRET: secret } = settings('SEND_SMS_HOOK_SECRET');
  // Supabase waits for five seconds.
  serve(createSendSmsHook({ deliver: deliverFromEnvironment(4_500), secret }));
}
