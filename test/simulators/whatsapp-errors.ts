// Error codes of the WhatsApp Cloud API with the HTTP status and title Meta documents for them (reference 02 section 3).

type Known = { http: number; title: string; transient?: true };

const known: Record<number, Known> = {
  0: { http: 401, title: 'AuthException' },
  1: { http: 400, title: 'API Unknown' },
  2: { http: 503, title: 'API Service', transient: true },
  3: { http: 500, title: 'API Method' },
  4: { http: 400, title: 'API Too Many Calls', transient: true },
  10: { http: 403, title: 'Permission Denied' },
  33: { http: 400, title: 'Parameter value is not valid' },
  100: { http: 400, title: 'Invalid parameter' },
  190: { http: 401, title: 'Access token has expired' },
  200: { http: 403, title: 'API Permission' },
  368: { http: 403, title: 'Temporarily blocked for policies violations' },
  803: { http: 404, title: 'Some of the aliases you requested do not exist' },
  80007: { http: 400, title: 'Rate limit issues' },
  130403: { http: 400, title: 'User is blocked by the business' },
  130429: { http: 400, title: 'Rate limit hit' },
  130472: { http: 400, title: "User's number is part of an experiment" },
  130497: {
    http: 403,
    title: 'Business account is restricted from messaging users in this country',
  },
  131000: { http: 500, title: 'Something went wrong' },
  131005: { http: 403, title: 'Access denied' },
  131008: { http: 400, title: 'Required parameter is missing' },
  131009: { http: 400, title: 'Parameter value is not valid' },
  131016: { http: 500, title: 'Service unavailable' },
  131021: { http: 400, title: 'Recipient cannot be sender' },
  131026: { http: 400, title: 'Message undeliverable' },
  131030: { http: 400, title: 'Recipient phone number not in allowed list' },
  131031: { http: 403, title: 'Account has been locked' },
  131037: { http: 400, title: 'WhatsApp provided number needs display name approval' },
  131042: { http: 400, title: 'Business eligibility payment issue' },
  131045: { http: 500, title: 'Incorrect certificate' },
  131047: { http: 400, title: 'Re-engagement message' },
  131048: { http: 400, title: 'Spam rate limit hit' },
  131049: { http: 400, title: 'Meta chose not to deliver' },
  131050: { http: 400, title: 'User has stopped marketing messages' },
  131051: { http: 400, title: 'Unsupported message type' },
  131052: { http: 400, title: 'Media download error' },
  131053: { http: 400, title: 'Media upload error' },
  131056: { http: 400, title: 'Business account to consumer account pair rate limit hit' },
  131057: { http: 500, title: 'Business account in maintenance mode' },
  131062: { http: 400, title: 'Business-scoped user id is not supported here' },
  131063: { http: 400, title: 'Marketing templates are disabled' },
  131064: { http: 400, title: 'Messaging limited for template classification violations' },
  132000: { http: 400, title: 'Number of parameters does not match the expected number of params' },
  132001: { http: 404, title: 'Template name does not exist in the translation' },
  132005: { http: 400, title: 'Translated text too long' },
  132007: { http: 400, title: 'Template format character policy violated' },
  132012: { http: 400, title: 'Parameter format does not match format in the created template' },
  132015: { http: 400, title: 'Template is paused' },
  132016: { http: 400, title: 'Template is disabled' },
  132018: { http: 400, title: 'Template validation error' },
  132068: { http: 400, title: 'Flow is in blocked state' },
  132069: { http: 400, title: 'Flow is in throttled state' },
  133000: { http: 500, title: 'Incomplete deregistration' },
  133004: { http: 503, title: 'Server temporarily unavailable' },
  133005: { http: 400, title: 'Two step verification PIN mismatch' },
  133006: { http: 400, title: 'Phone number re-verification needed' },
  133008: { http: 400, title: 'Too many two step verification PIN guesses' },
  133009: { http: 400, title: 'Two step verification PIN guessed too fast' },
  133010: { http: 400, title: 'Phone number not registered' },
  133015: { http: 400, title: 'Please wait a few minutes before attempting to register' },
  133016: { http: 400, title: 'Account register deregister rate limit exceeded' },
  134011: { http: 400, title: 'WhatsApp payments terms of service has not been accepted' },
  135000: { http: 400, title: 'Generic user error' },
  137000: { http: 400, title: 'Identity key hash mismatch' },
  2494100: { http: 400, title: 'Business phone number in maintenance mode' },
};

/** Every code of the table. */
export const knownErrorCodes: number[] = Object.keys(known).map(Number);

/** Whether the table has the code. */
export const isKnownError = (code: number): boolean => known[code] !== undefined;

/** Title of a code, as synchronous errors and `failed` statuses carry it. */
export const errorTitle = (code: number): string => known[code]?.title ?? 'Unknown error';

/** Additional parts of an error. Graph-level errors (no `details`) have no `error_data`, as on Meta's side. */
export type ErrorParts = { details?: string; subcode?: number; message?: string };

export type GraphError = { http: number; body: { error: Record<string, unknown> } };

/** The Graph error envelope of a code, with its HTTP status. */
export const graphError = (code: number, parts: ErrorParts = {}): GraphError => {
  const { http, title, transient } = known[code] ?? { http: 400, title: 'Unknown error' };
  const standard = code === 190 ? `Error validating access token: ${title}` : `(#${code}) ${title}`;
  return {
    http,
    body: {
      error: {
        message: parts.message ?? standard,
        type: parts.subcode === 33 ? 'GraphMethodException' : 'OAuthException',
        code,
        ...(parts.subcode === undefined ? {} : { error_subcode: parts.subcode }),
        ...(parts.details === undefined
          ? {}
          : { error_data: { messaging_product: 'whatsapp', details: parts.details } }),
        ...(transient ? { is_transient: true } : {}),
        fbtrace_id: `A${Math.random().toString(36).slice(2, 14)}`,
      },
    },
  };
};

/** An error thrown while a Graph call is checked. */
export class GraphFailure extends Error {
  readonly code: number;
  readonly parts: ErrorParts;

  constructor(code: number, parts: ErrorParts = {}) {
    super(`Graph error ${code}`);
    this.code = code;
    this.parts = parts;
  }
}

/** The object of a path is unknown or not the token's: Meta does not say which. */
export const unknownObject = (id: string, verb: string): GraphFailure =>
  new GraphFailure(100, {
    subcode: 33,
    message: `Unsupported ${verb} request. Object with ID '${id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation.`,
  });
