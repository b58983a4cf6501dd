// The named behaviours of a simulated phone on each channel: what the caller gets, what arrives, what is reported.
/** One status webhook of a message. `late` waits for the phone's delay_ms; `times` repeats the event. */
export type Step = {
  status: 'sent' | 'delivered' | 'read' | 'failed';
  code?: number;
  late?: true;
  times?: number;
};

/** What the HTTP call gets: a normal answer, an error, a proxy's HTML page, no answer, or a cut connection. */
export type WhatsAppAnswer = 'ok' | 'error' | 'html_502' | 'hold' | 'cut';

export type WhatsAppPlan = {
  about: string;
  answer: WhatsAppAnswer;
  /** Code of an `error` answer. */
  error?: number;
  /** Whether WhatsApp took the message, whatever the caller saw. */
  accepted: boolean;
  /** Whether it reaches the phone. */
  arrives: boolean;
  steps: Step[];
  /** delay_ms when none is set. */
  standardDelayMs?: number;
  /** The answer itself waits for delay_ms; message and statuses do not. */
  slowAnswer?: true;
  /** The answer waits until the webhook took the statuses, at most delay_ms. */
  answerLast?: true;
  messageStatus?: string;
  category?: string;
};

const sent: Step = { status: 'sent' };
const delivered: Step = { status: 'delivered', late: true };
/** The step that reports a failure. */
export const failed = (code: number): Step => ({ status: 'failed', code, late: true });

/** A plan that takes the message; it arrives when a step says so. */
export const accepts = (
  about: string,
  steps: Step[],
  more: Partial<WhatsAppPlan> = {},
): WhatsAppPlan => {
  const arrives = steps.some(({ status }) => status === 'delivered' || status === 'read');
  return { about, answer: 'ok', accepted: true, arrives, steps, ...more };
};

/** A plan that refuses the message with a code. */
export const refuses = (about: string, error: number): WhatsAppPlan => ({
  about,
  answer: 'error',
  error,
  accepted: false,
  arrives: false,
  steps: [],
});

/** WhatsApp behaviours by name. `error:<code>` and `failed:<code>` stand beside them. */
export const whatsappPlans: Record<string, WhatsAppPlan> = {
  ok: accepts('Answers 200, arrives, reports sent and delivered.', [sent, delivered]),
  read_only: accepts('Arrives; reports sent, then read without delivered.', [
    sent,
    { status: 'read', late: true },
  ]),
  unreachable_async: accepts('200, then a failed status 131026 without sent: not on WhatsApp.', [
    failed(131026),
  ]),
  unreachable_sync: refuses('HTTP 400 with 131026.', 131026),
  silent: accepts('200, then nothing: never delivered, no status.', []),
  stays_sent: accepts('200 and sent, never delivered: phone off, or sender blocked.', [sent]),
  timeout: {
    ...refuses('No answer for 60 s (or delay_ms); nothing is sent.', 0),
    answer: 'hold',
  },
  accept_then_hang: accepts(
    'No answer for 60 s (or delay_ms), but the message arrives and is reported.',
    [sent, { status: 'delivered' }],
    { answer: 'hold' },
  ),
  slow: accepts(
    'Arrives and is reported at once, the answer follows after 3 s (or delay_ms).',
    [sent, { status: 'delivered' }],
    { slowAnswer: true, standardDelayMs: 3000 },
  ),
  early_statuses: accepts(
    'The statuses overtake the answer, which waits for them at most 2 s (or delay_ms).',
    [sent, { status: 'delivered' }],
    { answerLast: true, standardDelayMs: 2000 },
  ),
  early_failed: accepts(
    'A failed status 131026 overtakes the answer, which waits for it at most 2 s (or delay_ms).',
    [{ status: 'failed', code: 131026 }],
    { answerLast: true, standardDelayMs: 2000 },
  ),
  accept_then_drop: accepts(
    'Arrives and is reported, but the connection is cut without an answer.',
    [sent, delivered],
    { answer: 'cut' },
  ),
  drop: { ...refuses('The connection is cut, nothing is sent.', 0), answer: 'cut' },
  sent_then_failed: accepts('200 and sent, then failed 131026; never arrives.', [
    sent,
    failed(131026),
  ]),
  late_failed: accepts(
    '200 and sent, then failed 131026 after 5 s (or delay_ms); never arrives.',
    [sent, failed(131026)],
    { standardDelayMs: 5000 },
  ),
  delivered_then_failed: accepts('Arrives; reports sent, delivered, then failed 131026.', [
    sent,
    { status: 'delivered' },
    failed(131026),
  ]),
  failed_then_delivered: accepts('Reports failed 131026, then arrives and reports delivered.', [
    { status: 'failed', code: 131026 },
    delivered,
  ]),
  duplicate_statuses: accepts('Arrives; every status is reported three times.', [
    { ...sent, times: 3 },
    { ...delivered, times: 3 },
  ]),
  reordered_statuses: accepts('Arrives; reports read, delivered, sent, in this order.', [
    { status: 'read' },
    { status: 'delivered' },
    sent,
  ]),
  held: accepts(
    '200 with message_status held_for_quality_assessment, then failed 132015.',
    [failed(132015)],
    { messageStatus: 'held_for_quality_assessment' },
  ),
  international: accepts('As ok, priced authentication-international.', [sent, delivered], {
    category: 'authentication-international',
  }),
  international_underscore: accepts(
    'As ok, priced authentication_international, the other spelling.',
    [sent, delivered],
    { category: 'authentication_international' },
  ),
  http_500: refuses('HTTP 500 with 131000.', 131000),
  http_502_html: { ...refuses("HTTP 502 with a proxy's HTML page.", 0), answer: 'html_502' },
  unavailable: refuses('HTTP 503 with code 2: temporary downtime.', 2),
  maintenance: refuses('HTTP 500 with 131057: number in maintenance.', 131057),
  rate_limited: refuses('130429: throughput of the number reached.', 130429),
  pair_limited: refuses('131056: too many messages to this recipient.', 131056),
  template_not_approved: refuses('132001: no such approved template.', 132001),
  template_paused: refuses('132015: template paused.', 132015),
  template_disabled: refuses('132016: template disabled for good.', 132016),
  token_expired: refuses('HTTP 401 with 190: access token expired.', 190),
  broken: refuses('131031: account locked.', 131031),
};

export type TelegramPlan = {
  about: string;
  answer: 'ok' | 'error' | 'html_502' | 'hold' | 'cut';
  error?: { code: number; description: string; retryAfterSeconds?: number };
  arrives: boolean;
  slowAnswer?: true;
};

/** What is common to the errors of the Bot API. */
export const telegramError = (
  code: number,
  description: string,
  retryAfterSeconds?: number,
): Omit<TelegramPlan, 'about'> => ({
  answer: 'error',
  arrives: false,
  error: { code, description, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) },
});

/** Telegram behaviours by name. `retry_after:<seconds>` stands beside them. */
export const telegramPlans: Record<string, TelegramPlan> = {
  ok: { about: 'The bot can write.', answer: 'ok', arrives: true },
  blocked: {
    about: '403: the user blocked the bot.',
    ...telegramError(403, 'Forbidden: bot was blocked by the user'),
  },
  deactivated: {
    about: '403: the account is gone.',
    ...telegramError(403, 'Forbidden: user is deactivated'),
  },
  chat_not_found: {
    about: '400: no such chat.',
    ...telegramError(400, 'Bad Request: chat not found'),
  },
  rate_limited: {
    about: '429 with retry_after 30.',
    ...telegramError(429, 'Too Many Requests: retry after 30', 30),
  },
  rate_limited_briefly: {
    about: '429 with retry_after 1.',
    ...telegramError(429, 'Too Many Requests: retry after 1', 1),
  },
  unauthorized: { about: '401: the bot token is refused.', ...telegramError(401, 'Unauthorized') },
  http_500: {
    about: 'HTTP 500; nothing is sent.',
    ...telegramError(500, 'Internal Server Error: restart'),
  },
  http_502_html: { about: "HTTP 502 with a proxy's page.", answer: 'html_502', arrives: false },
  timeout: {
    about: 'No answer for 60 s (or delay_ms); nothing is sent.',
    answer: 'hold',
    arrives: false,
  },
  accept_then_hang: {
    about: 'No answer for 60 s (or delay_ms), but the message arrives.',
    answer: 'hold',
    arrives: true,
  },
  slow: {
    about: 'Arrives at once, the answer follows after 3 s (or delay_ms).',
    answer: 'ok',
    arrives: true,
    slowAnswer: true,
  },
  accept_then_drop: { about: 'Arrives, but the connection is cut.', answer: 'cut', arrives: true },
  drop: { about: 'The connection is cut, nothing is sent.', answer: 'cut', arrives: false },
};
