// The endpoint of Logto's HTTP SMS connector: Logto makes and checks the codes, Tessera brings them to WhatsApp or Telegram.
// Payload and answers: https://docs.logto.io/integrations/http-sms
import { type Deliver, e164 } from '../deliver/deliver.ts';
import {
  deliverFromEnvironment,
  type Handler,
  isFrom,
  notACode,
  refuse,
  serve,
  settings,
} from '../deliver/serve.ts';

export type ConnectorOptions = {
  deliver: Deliver;
  /** What the connector's "Authorization Token" is set to; Logto sends it as the Authorization header. */
  authorization: string;
};

type SendMessage = {
  to?: string;
  /** SignIn, Register, ForgotPassword, Generic … */
  type?: string;
  payload?: { code?: string };
};

/** The connector's endpoint: 2xx when a channel took the code; Logto takes anything else as a failed send. */
export const createConnector =
  ({ deliver, authorization }: ConnectorOptions): Handler =>
  async (request) => {
    if (!isFrom(request, authorization)) return new Response(null, { status: 401 });
    const body = await request.text();
    const { to, type, payload } = JSON.parse(body) as SendMessage;
    const code = payload?.code;
    // Logto uses the connector for invitations, too, which carry a link instead of a code.
    if (!to || !code) return notACode(type);
    const outcome = await deliver({ phone: e164(to), code, request: body });
    return outcome.sent ? new Response(null, { status: 204 }) : refuse(outcome.refusal);
  };

if (import.meta.main) {
  const { LOGTO_AUTHORIZATION: authorization } = settings('LOGTO_AUTHORIZATION');
  serve(createConnector({ deliver: deliverFromEnvironment(), authorization }));
}
