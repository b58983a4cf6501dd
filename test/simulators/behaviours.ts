// What a phone can be told to do, on each channel, and what the provider then says.

/** A Graph error: HTTP status and body code as the Cloud API gives them. */
export type GraphError = { status: number; code: number; title: string };

const graph = (status: number, code: number, title: string): GraphError => ({
  status,
  code,
  title,
});

/** Reference 02 section 3: the HTTP status is a hint, the code is what counts. */
export const graphErrors: Record<number, GraphError> = Object.fromEntries(
  [
    graph(401, 0, 'AuthException'),
    graph(400, 1, 'API Unknown'),
    graph(503, 2, 'API Service'),
    graph(500, 3, 'API Method'),
    graph(400, 4, 'API Too Many Calls'),
    graph(403, 10, 'Permission Denied'),
    graph(400, 33, 'Parameter value is not valid'),
    graph(400, 100, 'Invalid parameter'),
    graph(401, 190, 'Access token has expired'),
    graph(403, 200, 'API Permission'),
    graph(403, 368, 'Temporarily blocked for policies violations'),
    graph(404, 803, 'Some of the aliases you requested do not exist'),
    graph(400, 80007, 'Rate limit issues'),
    graph(400, 130403, 'Business blocked this user'),
    graph(400, 130429, 'Rate limit hit'),
    graph(400, 130472, "User's number is part of an experiment"),
    graph(400, 130497, 'Business account is restricted from messaging users in this country'),
    graph(500, 131000, 'Something went wrong'),
    graph(403, 131005, 'Access denied'),
    graph(400, 131008, 'Required parameter is missing'),
    graph(400, 131009, 'Parameter value is not valid'),
    graph(500, 131016, 'Service unavailable'),
    graph(400, 131021, 'Recipient cannot be sender'),
    graph(400, 131026, 'Message undeliverable'),
    graph(400, 131030, 'Recipient phone number not in allowed list'),
    graph(403, 131031, 'Account has been locked'),
    graph(400, 131037, 'Display name not approved'),
    graph(400, 131042, 'Business eligibility payment issue'),
    graph(500, 131045, 'Incorrect certificate'),
    graph(400, 131047, 'Re-engagement message'),
    graph(400, 131048, 'Spam rate limit hit'),
    graph(400, 131049, 'Meta chose not to deliver'),
    graph(400, 131050, 'User has stopped marketing messages'),
    graph(400, 131051, 'Unsupported message type'),
    graph(400, 131052, 'Media download error'),
    graph(400, 131053, 'Media upload error'),
    graph(400, 131056, '(Business Account, Consumer Account) pair rate limit hit'),
    graph(500, 131057, 'Account in maintenance mode'),
    graph(400, 131062, 'Recipient id not supported'),
    graph(400, 131063, 'Marketing templates disabled'),
    graph(400, 131064, 'Template classification limit'),
    graph(400, 132000, 'Template Param Count Mismatch'),
    graph(404, 132001, 'Template does not exist'),
    graph(400, 132005, 'Template Hydrated Text Too Long'),
    graph(400, 132007, 'Template Format Character Policy Violated'),
    graph(400, 132012, 'Template Parameter Format Mismatch'),
    graph(400, 132015, 'Template is paused'),
    graph(400, 132016, 'Template is disabled'),
    graph(400, 132018, 'Template validation error'),
    graph(503, 133004, 'Server Temporarily Unavailable'),
    graph(400, 133010, 'Phone number Not Registered'),
    graph(400, 133015, 'Please wait a few minutes'),
    graph(400, 133016, 'Account register rate limit'),
    graph(400, 135000, 'Generic user error'),
    graph(400, 137000, 'Identity key mismatch'),
    graph(500, 2494100, 'Maintenance mode'),
  ].map((error) => [error.code, error]),
);

export type Receipt = { status: 'sent' | 'delivered' | 'read' | 'failed'; errorCode?: number };

/**
 * One way to treat a message: whether it reaches the phone, what the call is answered, and which receipts follow.
 * `delay_ms` of a phone is the time before each receipt.
 */
export type WhatsappPlan = {
  answer: 'accepted' | 'hang' | 'cut' | 'html_502' | GraphError;
  delivers: boolean;
  receipts: Receipt[];
  /** The receipts leave before the call is answered. */
  early?: boolean;
};

const arrive: Receipt[] = [{ status: 'sent' }, { status: 'delivered' }];
const undeliverable = 131026;
const failed = (errorCode: number): Receipt => ({ status: 'failed', errorCode });
const refused = (code: number): WhatsappPlan => ({
  answer: graphErrors[code] ?? graph(400, code, 'Error'),
  delivers: false,
  receipts: [],
});
const accepted = (delivers: boolean, receipts: Receipt[]): WhatsappPlan => ({
  answer: 'accepted',
  delivers,
  receipts,
});

/** The named behaviours; `error:<code>` and `failed:<code>` make any code of the table above. */
export const whatsappBehaviours: Record<string, WhatsappPlan> = {
  ok: accepted(true, arrive),
  unreachable_async: accepted(false, [failed(undeliverable)]),
  unreachable_sync: refused(undeliverable),
  silent: accepted(false, []),
  timeout: { answer: 'hang', delivers: false, receipts: [] },
  http_500: refused(131000),
  rate_limited: refused(130429),
  template_not_approved: refused(132001),
  token_expired: refused(190),
  accept_then_drop: { answer: 'cut', delivers: true, receipts: arrive },
  accept_then_hang: { answer: 'hang', delivers: true, receipts: arrive },
  sent_then_failed: accepted(false, [{ status: 'sent' }, failed(undeliverable)]),
  delivered_then_failed: accepted(true, [...arrive, failed(undeliverable)]),
  failed_then_delivered: accepted(true, [failed(undeliverable), { status: 'delivered' }]),
  read_only: accepted(true, [{ status: 'read' }]),
  duplicate_statuses: accepted(true, [...arrive, ...arrive, ...arrive]),
  reordered_statuses: accepted(true, [
    { status: 'read' },
    { status: 'delivered' },
    { status: 'sent' },
  ]),
  early_statuses: { ...accepted(true, arrive), early: true },
  early_failed: { ...accepted(false, [failed(undeliverable)]), early: true },
  http_502_html: { answer: 'html_502', delivers: false, receipts: [] },
  template_paused: refused(132015),
  broken: refused(131031),
  pair_limited: refused(131056),
};

/** The plan for a behaviour's name; undefined when there is no such behaviour. */
export const whatsappPlan = (name: string): WhatsappPlan | undefined => {
  const [kind, text = ''] = name.split(':');
  const code = Number(text);
  if (text !== '' && graphErrors[code] !== undefined) {
    if (kind === 'error') return refused(code);
    if (kind === 'failed') return accepted(false, [failed(code)]);
  }
  return whatsappBehaviours[name];
};

export const telegramBehaviours = [
  'ok',
  'blocked',
  'deactivated',
  'chat_not_found',
  'rate_limited',
  'rate_limited_briefly',
  'timeout',
  'http_500',
  'unauthorized',
] as const;
export type TelegramBehaviour = (typeof telegramBehaviours)[number];

export type Behaviour = { whatsapp: string; telegram: TelegramBehaviour; delayMs: number };

export const defaultBehaviour: Behaviour = { whatsapp: 'ok', telegram: 'ok', delayMs: 0 };
