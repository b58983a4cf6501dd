// How Supabase, Logto, Ory Kratos and Zitadel call their senders: the payloads and signatures they document.
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import type { Deliver } from '../../examples/deliver/deliver.ts';
import type { Handler } from '../../examples/deliver/serve.ts';
import { createConnector } from '../../examples/logto/connector.ts';
import { createCourier } from '../../examples/ory-kratos/courier.ts';
import { createSendSmsHook } from '../../examples/supabase-send-sms/hook.ts';
import { createProvider } from '../../examples/zitadel/provider.ts';

export type Call = { headers: Record<string, string>; body: string };

/** One of the four: how it is called with a phone and a code, and how it is set up. */
export type Sender = {
  name: string;
  file: string;
  environment: Record<string, string>;
  create(deliver: Deliver): Handler;
  call(phone: string, code: string): Call;
};

export const json = { 'content-type': 'application/json' };
export const authorization = 'Bearer a token of their own';

// The example of https://supabase.com/docs/guides/auth/auth-hooks/send-sms-hook, shortened.
export const supabaseBody = (phone: string, otp: string, sms: object = {}): string =>
  JSON.stringify({
    user: {
      id: '6481a5c1-3d37-4a56-9f6a-bee08c554965',
      ...{ aud: 'authenticated', role: 'authenticated', email: '' },
      phone,
      phone_confirmed_at: '2024-05-13T11:52:48.157306Z',
      confirmation_sent_at: '2024-05-14T12:31:52.824573Z',
      app_metadata: { provider: 'phone', providers: ['phone'] },
      ...{ user_metadata: {}, identities: [], is_anonymous: false },
      updated_at: '2024-05-14T12:31:52.82475Z',
    },
    sms: { otp, ...sms },
  });

export const hookSecret = `v1,whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;

let webhooks = 0;
/** A call of the hook: Supabase signs every attempt under an id of its own. */
export const supabaseCall = (body: string, secret = hookSecret, at = new Date()): Call => {
  webhooks += 1;
  const id = `msg_${webhooks}`;
  return {
    headers: {
      ...json,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret.slice('v1,'.length)).sign(id, at, body),
    },
    body,
  };
};

export const supabase: Sender = {
  name: 'Supabase',
  file: 'examples/supabase-send-sms/hook.ts',
  environment: { SEND_SMS_HOOK_SECRET: hookSecret },
  create: (deliver) => createSendSmsHook({ deliver, secret: hookSecret }),
  // Supabase keeps numbers without the plus sign.
  call: (phone, code) => supabaseCall(supabaseBody(phone.slice(1), code)),
};

// The example of https://docs.logto.io/integrations/http-sms.
export const logto: Sender = {
  name: 'Logto',
  file: 'examples/logto/connector.ts',
  environment: { LOGTO_AUTHORIZATION: authorization },
  create: (deliver) => createConnector({ deliver, authorization }),
  call: (to, code) => ({
    headers: { ...json, authorization },
    body: JSON.stringify({ to, type: 'SignIn', payload: { code }, ip: '192.168.1.1' }),
  }),
};

// The fields of https://www.ory.com/docs/kratos/emails-sms/sending-sms, as tessera.jsonnet passes them on.
export const kratosCall = (recipient: string, type: string, data: object): Call => ({
  headers: { ...json, authorization },
  body: JSON.stringify({ recipient, template_type: type, template_data: data }),
});

export const kratos: Sender = {
  name: 'Ory Kratos',
  file: 'examples/ory-kratos/courier.ts',
  environment: { KRATOS_AUTHORIZATION: authorization },
  create: (deliver) => createCourier({ deliver, authorization }),
  call: (to, code) =>
    kratosCall(to, 'login_code_valid', {
      ...{ to, login_code: code, identity: {}, transient_payload: {} },
      ...{ request_url: 'https://id.example/self-service/login?flow=1', expires_in_minutes: 15 },
    }),
};

export const signingKey = 'a signing key of Zitadel';

// The example of https://zitadel.com/docs/guides/manage/customize/notification-providers is one for
// mail; for a text message contextInfo has recipientPhoneNumber in place of recipientEmailAddress.
export const zitadelBody = (phone: string, args: object): string =>
  JSON.stringify({
    contextInfo: {
      eventType: 'user.human.phone.code.added',
      provider: { id: '285181292935381355', description: 'test' },
      recipientPhoneNumber: phone,
    },
    templateData: { title: 'Zitadel - Verify phone', text: 'Your code', footerText: '' },
    args: {
      ...args,
      ...{ changeDate: '2024-09-16T10:58:50.73237+02:00', displayName: 'GivenName FamilyName' },
      ...{ lastPhone: phone, loginNames: ['Username'], verifiedPhone: '' },
    },
  });

export const zitadelCall = (body: string, at = Date.now(), keys = [signingKey]): Call => {
  const time = Math.floor(at / 1000);
  const sign = (key: string) => createHmac('sha256', key).update(`${time}.${body}`).digest('hex');
  const signature = [`t=${time}`, ...keys.map((key) => `v1=${sign(key)}`)].join(',');
  return { headers: { ...json, 'ZITADEL-Signature': signature }, body };
};

export const zitadel: Sender = {
  name: 'Zitadel',
  file: 'examples/zitadel/provider.ts',
  environment: { ZITADEL_SIGNING_KEY: signingKey },
  create: (deliver) => createProvider({ deliver, signingKey }),
  call: (phone, code) => zitadelCall(zitadelBody(phone, { code })),
};

export const senders = [supabase, logto, kratos, zitadel];
