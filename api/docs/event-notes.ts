// What a receiver does about each kind of event; what the event is and holds, the catalogue says.
import type { PublicEventType } from '../../lib/webhooks/catalogue.ts';

/** One for every type there is; a type without one does not compile. */
export const eventNotes: Record<PublicEventType, string> = {
  'otp.sent': 'It has not arrived yet: do not take it for proof that the phone exists.',
  'otp.delivered': 'The user has the message; offering a resend before it makes little sense.',
  'otp.verified':
    'Comes beside the answer of verify. Use it where the caller may have died in between.',
  'otp.failed':
    'Offer another way. `failure_reason` says why; what was charged for the message is given back.',
  'otp.expired':
    'Many of these for one country or form are worth a look: somebody may only ask for codes.',
  'otp.completed':
    'The one to keep if you keep only one: state, channel, latency and cost of every message.',
  'telegram.linked':
    'Codes can fall back to Telegram from now on. After a `deliver` that was answered `CHANNEL_NOT_LINKED` this is the moment to repeat it.',
  'totp.enrolled': 'From now on the phone can be asked for codes of its app.',
  'totp.verified': 'Comes beside the answer of verify, and is what was charged.',
  'totp.disabled': 'Offer to enroll again where a second factor is required.',
  'whatsapp.connected': 'Sends go out from the own number once its template is approved.',
  'whatsapp.disconnected': 'Sends use the shared number again, with its limits and countries.',
  'template.status_changed':
    'Sends from the own number need `approved`. Look at rejected and paused ones in WhatsApp Manager.',
  'billing.low_balance': 'Make a deposit: below 2 USD sends are refused.',
  'billing.trial_exhausted': 'A deposit keeps codes going out.',
  'billing.plan_changed':
    'With the reason `safety_floor` hardly anybody enters your codes: find out who asks for them.',
  'capacity_request.updated':
    '`GET /v1/clients/limits` shows the tier that holds now, and until when.',
  'account.suspended': 'Keys and sessions are refused from this moment. Ask the operator.',
  'security.mfa_disabled': 'If that was not you, change the password and end the other sessions.',
  'security.recovery_codes_low': 'Make new ones: `POST /v1/clients/security/mfa/recovery`.',
  'security.key_created':
    'If that was none of yours, revoke the key that made it: what it made ends with it.',
  'security.key_revoked': 'Calls with it are refused from this second on.',
  'security.settings_changed':
    'If that was not you, `GET /v1/clients/security/log` says with which credential it was done.',
  'security.password_changed': 'If that was not you, reset the password by phone.',
  'security.phone_changed':
    'If that was not you, ask the operator: password resets go to the new phone.',
  'security.login': 'If that was not you, change the password and end the other sessions.',
  'webhook.test': 'Nothing: your endpoint works.',
};
