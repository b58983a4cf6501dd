// Parts of a page that need an engine: when it is away, the part says so and the rest of the page stands.
import { isOutage } from '../../../lib/infra/outages.ts';
import { BrokerUnavailable, OutcomeUnknown } from '../../../lib/infra/queue/errors.ts';
import { RedisUnavailable } from '../../../lib/infra/redis.ts';
import { second } from '../../../lib/kernel/clock.ts';
import { errorCatalogue, type FieldIssue, ServiceError } from '../../../lib/kernel/errors.ts';
import { inTime } from '../../../lib/kernel/in-time.ts';
import { type Html, html } from './html.ts';

/** People wait this long for a part of a page; then they are told. */
const patienceMs = 4 * second;

class Late extends Error {}

const engineOf = (error: unknown): string => {
  if (error instanceof RedisUnavailable) return 'Redis';
  return error instanceof BrokerUnavailable || error instanceof OutcomeUnknown
    ? 'RabbitMQ'
    : 'MySQL';
};

/** What people call the fields of the operations. */
const labels: Record<string, string> = {
  ...{ amount: 'Amount', reference: 'Reference', note: 'Note', reason: 'Reason' },
  ...{ country: 'Country', countries: 'Countries', price: 'Price', cost: 'Cost', q: 'Search' },
  ...{ account: 'The account', id: 'The id', before: 'The part of the list', job: 'The job' },
  ...{ per_second: 'How many a second', per_minute: 'Sends a minute', confirm: 'Confirmation' },
};

const sentenceOf = ({ field, issue }: FieldIssue): string => {
  const [name = ''] = field.split('.');
  const label = labels[name];
  return label === undefined
    ? `${issue[0]?.toUpperCase()}${issue.slice(1)}.`
    : `${label} ${issue}.`;
};

/** Names of the fields that were wrong. */
export const wrongFields = (error: unknown): string[] =>
  error instanceof ServiceError
    ? (error.extras.details ?? []).map(({ field }) => field.split('.')[0] ?? '')
    : [];

/** Why something cannot be shown or done, in words; undefined for what nobody foresaw. */
export const excuse = (error: unknown): string | undefined => {
  if (error instanceof Late) return 'There was no answer within four seconds.';
  const cause = error instanceof ServiceError ? (error.cause ?? error) : error;
  if (isOutage(cause)) return `${engineOf(cause)} does not answer.`;
  if (!(error instanceof ServiceError)) return undefined;
  const details = error.extras.details ?? [];
  return details.length > 0 ? details.map(sentenceOf).join(' ') : error.message;
};

export type Loaded<T> = { value: T } | { why: string };

/** What was asked for wrongly will not come right by asking again. */
const isRefused = (error: unknown): boolean =>
  error instanceof ServiceError &&
  error.cause === undefined &&
  errorCatalogue[error.code].status < 500;

/** What `load` found, or why it cannot be had now; what is wrong by itself or nobody foresaw is thrown on. */
export const attempt = async <T>(load: () => Promise<T>): Promise<Loaded<T>> => {
  try {
    return { value: await inTime(load(), patienceMs, () => new Late()) };
  } catch (error) {
    const why = excuse(error);
    if (why === undefined || isRefused(error)) throw error;
    return { why };
  }
};

/** The sentence in the place of what cannot be shown. */
export const notShown = (what: string, why: string): Html =>
  html`<p class="away"><strong>${what} cannot be shown.</strong> ${why} This page keeps asking.</p>`;

/** What `view` makes of what `load` found, or a sentence that says why there is nothing. */
export const section = async <T>(
  what: string,
  load: () => Promise<T>,
  view: (value: T) => Html,
): Promise<Html> => {
  const loaded = await attempt(load);
  return 'value' in loaded ? view(loaded.value) : notShown(what, loaded.why);
};
