// The HTTP courier of Ory Kratos: Kratos makes and checks the codes, Tessera brings them to WhatsApp or Telegram.
// Configuration and payload: https://www.ory.com/docs/kratos/emails-sms/sending-sms
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

export type CourierOptions = {
  deliver: Deliver;
  /** The Authorization header that `auth` in kratos.yml sets. */
  authorization: string;
};

/** What tessera.jsonnet renders. */
type CourierMessage = {
  recipient?: string;
  /** login_code_valid, verification_code_valid … */
  template_type?: string;
  template_data?: Record<string, unknown>;
};

// The documentation writes VerificationCode, Kratos itself serialises verification_code: both are taken.
const codeName = /^(login|registration|verification|recovery)_?code$/i;

const codeOf = (data: Record<string, unknown>): string | undefined => {
  const [, code] = Object.entries(data).find(([name]) => codeName.test(name)) ?? [];
  return typeof code === 'string' ? code : undefined;
};

/**
 * The courier's endpoint. Kratos reads the status alone: anything but 2xx is tried again, at most
 * `courier.message_retries` times, then the message is abandoned; the body goes to its log.
 */
export const createCourier =
  ({ deliver, authorization }: CourierOptions): Handler =>
  async (request) => {
    if (!isFrom(request, authorization)) return new Response(null, { status: 401 });
    const body = await request.text();
    const {
      recipient,
      template_type: type,
      template_data: data,
    } = JSON.parse(body) as CourierMessage;
    const code = codeOf(data ?? {});
    if (!recipient || code === undefined) return notACode(type);
    // A message that is tried again has the same body.
    const outcome = await deliver({ phone: e164(recipient), code, request: body });
    return outcome.sent ? new Response(null, { status: 204 }) : refuse(outcome.refusal);
  };

if (import.meta.main) {
  const { KRATOS_AUTHORIZATION: authorization } = settings('KRATOS_AUTHORIZATION');
  serve(createCourier({ deliver: deliverFromEnvironment(), authorization }));
}
