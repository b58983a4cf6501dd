// The wide line of each request and each job: one JSON line that says everything, for all that fails or is slow and a share of the rest.
import type { SettledJob } from '../infra/queue/consumer.ts';
import { jobs } from '../jobs.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { maskPhone } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { traceIdOf } from '../kernel/tracing.ts';

/** What a request came to. */
export type RequestLine = {
  requestId: string;
  traceId: string | undefined;
  method: string;
  /** Template of the route, never the path: paths carry ids. */
  route: string;
  status: number;
  error: ErrorCode | undefined;
  ms: number;
  accountId: string | undefined;
  keyId: string | undefined;
  mode: string | undefined;
  messageId: string | undefined;
  phone: string | undefined;
  /** Who tries to get in: the e-mail address as it is compared, and the opaque name of where the call comes from. */
  login?: { email: string; source: string } | undefined;
  /** The jobs that a provider's call became, as their own lines name them. */
  jobs?: readonly string[] | undefined;
};

export type Lines = {
  request(line: RequestLine): void;
  job(settled: SettledJob): void;
};

const rounded = (ms: number): number => Math.round(ms * 10) / 10;

/** FNV-1a over the text, as a number from 0 to 1: requests and their jobs are kept or left out together. */
const lotOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0) / 2 ** 32;
};

/** Whether a line is written: everything that failed or took long, and `share` of the rest. */
export const isKept = (
  given: { id: string; failed: boolean; ms: number },
  { share, slowMs }: { share: number; slowMs: number },
): boolean => given.failed || given.ms >= slowMs || (share > 0 && lotOf(given.id) < share);

const hashShown = 12;

/** How an e-mail address or a source stands in the lines of logins. */
export const loginHash = (
  recipients: Pick<RecipientKeys, 'ofLogin'>,
  what: 'email' | 'source',
  text: string,
): string => recipients.ofLogin(what, text).slice(0, hashShown);

const aboutOf = new Map(jobs.map(({ name, about }) => [name, about]));

/** The lines of a process. Phones are masked, and hashed so that lines about one can be found. */
export const createLines = (deps: {
  log: Log;
  recipients: Pick<RecipientKeys, 'ofPhone' | 'ofLogin'>;
  /** Share of the successes that are written, 0 to 1. */
  share: number;
  slowMs: number;
}): Lines => {
  const { log, recipients, share, slowMs } = deps;
  const kept = { share, slowMs };

  const recipientOf = (phone: string | undefined) =>
    phone === undefined
      ? undefined
      : {
          recipient: maskPhone(phone),
          recipient_hash: recipients.ofPhone(phone).slice(0, hashShown),
        };

  const loginOf = (login: RequestLine['login']) =>
    login && {
      email_hash: loginHash(recipients, 'email', login.email),
      source_hash: loginHash(recipients, 'source', login.source),
    };

  return {
    request: (line) => {
      const { requestId, error, ms, phone } = line;
      if (!isKept({ id: requestId, failed: error !== undefined, ms }, kept)) return;
      log.info(
        {
          ...{ request_id: requestId, trace_id: line.traceId },
          ...{ method: line.method, route: line.route, status: line.status, error },
          ...{ account_id: line.accountId, key_id: line.keyId, mode: line.mode },
          ...{ message_id: line.messageId, jobs: line.jobs },
          ...recipientOf(phone),
          ...loginOf(line.login),
          ms: rounded(ms),
        },
        'request',
      );
    },
    job: ({ job, outcome, reason, payload, meta, ms, waitedMs }) => {
      const { messageId, requestId, traceparent, attempt } = meta;
      if (!isKept({ id: requestId ?? messageId, failed: outcome !== 'done', ms }, kept)) return;
      const { phone, ...about } = payload === undefined ? {} : (aboutOf.get(job)?.(payload) ?? {});
      const fields = {
        ...{ job, message_id: messageId, request_id: requestId },
        ...{
          trace_id: traceIdOf(traceparent),
          attempt,
          outcome,
          reason,
          ...about,
          ...recipientOf(phone),
        },
        ...{ ms: rounded(ms), wait_ms: waitedMs },
      };
      if (outcome === 'done') log.info(fields, 'job');
      else if (outcome === 'retry') log.warn(fields, 'job');
      else log.error(fields, 'job');
    },
  };
};
