// The metrics of one process: made once, handed to whoever counts. No label ever names an account, a phone or a message.
import { Registry } from 'prom-client';
import type { ErrorCode } from '../kernel/errors.ts';
import { counterFamily, durationFamily, readGauge } from './family.ts';

const unlabelled: readonly string[] = [];

/** What the API answers. */
const requestMetrics = (registry: Registry) => ({
  requests: durationFamily({
    registry,
    name: 'tessera_http_request_duration_seconds',
    help: 'Requests by the template of their route and the class of their status.',
    labels: ['method', 'route', 'status'],
  }),
  errors: counterFamily({
    registry,
    name: 'tessera_http_errors_total',
    help: 'Errors answered, by their code.',
    labels: ['code'],
  }),
  refusals: counterFamily({
    registry,
    name: 'tessera_admission_rejected_total',
    help: 'Requests refused by a limit, by what was over it.',
    labels: ['dimension', 'reason'],
  }),
  intake: counterFamily({
    registry,
    name: 'tessera_intake_refused_total',
    help: 'Connections closed and request bodies refused because too many were open, by the limit.',
    labels: ['limit'],
  }),
  failOpen: counterFamily({
    registry,
    name: 'tessera_redis_failopen_total',
    help: 'Calls whose limit was decided without Redis, by limit.',
    labels: ['limit'],
  }),
});

/** What the rooms decide. */
const roomMetrics = (registry: Registry) => ({
  sends: counterFamily({
    registry,
    name: 'tessera_sends_total',
    help: 'Messages by channel and what became of them: accepted, delivered, verified, failed, expired.',
    labels: ['channel', 'outcome', 'mode'],
  }),
  verifies: counterFamily({
    registry,
    name: 'tessera_verify_total',
    help: 'Codes checked, by method (otp, totp) and result.',
    labels: ['method', 'result'],
  }),
  idempotency: counterFamily({
    registry,
    name: 'tessera_idempotency_total',
    help: 'Requests with an Idempotency-Key: new, replay, conflict, mismatch, takeover.',
    labels: ['outcome'],
  }),
  pumping: counterFamily({
    registry,
    name: 'tessera_pumping_decisions_total',
    help: 'Decisions of the guard against pumping: refused, would_refuse, held.',
    labels: ['decision'],
  }),
  postings: counterFamily({
    registry,
    name: 'tessera_ledger_postings_total',
    help: 'Postings to the ledger by kind.',
    labels: ['kind'],
  }),
});

/** What others answer us. */
const outsideMetrics = (registry: Registry) => ({
  providers: durationFamily({
    registry,
    name: 'tessera_provider_duration_seconds',
    help: 'Calls to WhatsApp and Telegram; outcome is accepted, unknown or the class of the refusal.',
    labels: ['provider', 'outcome'],
  }),
  webhooks: durationFamily({
    registry,
    name: 'tessera_webhook_attempt_duration_seconds',
    help: 'Attempts to deliver a webhook, by class of status or the reason of no answer.',
    labels: ['result'],
  }),
  jobs: durationFamily({
    registry,
    name: 'tessera_job_duration_seconds',
    help: 'Jobs worked on, by queue and outcome (done, retry, dead).',
    labels: ['queue', 'outcome'],
  }),
  waits: durationFamily({
    registry,
    name: 'tessera_job_wait_seconds',
    help: 'Time between publishing a job and taking it up for the first time.',
    labels: ['queue'],
  }),
});

/** The last proofs of books and rollups; nothing is reported before the first. */
const proofMetrics = (registry: Registry) => {
  let last: { mismatches: number; at: number } | undefined;
  let drift: number | undefined;
  const gauge = (name: string, help: string, read: (proof: NonNullable<typeof last>) => number) =>
    readGauge({ registry, name, help, labels: unlabelled }, () =>
      last === undefined ? [] : [{ value: read(last) }],
    );
  gauge(
    'tessera_reconcile_mismatches',
    'Differences that the last proof of the books found.',
    (proof) => proof.mismatches,
  );
  gauge(
    'tessera_reconcile_timestamp_seconds',
    'When the books were last proven, Unix time.',
    (proof) => proof.at / 1000,
  );
  readGauge(
    {
      ...{ registry, name: 'tessera_rollup_drift', labels: unlabelled },
      help: 'Rollups that differed from a recount of their messages in the last night.',
    },
    () => (drift === undefined ? [] : [{ value: drift }]),
  );
  return {
    recounted: (drifted: number): void => {
      drift = drifted;
    },
    reconciled: (mismatches: number, at: number): void => {
      last = { mismatches, at };
    },
  };
};

export type Metrics = { registry: Registry } & ReturnType<typeof requestMetrics> &
  ReturnType<typeof roomMetrics> &
  ReturnType<typeof outsideMetrics> &
  ReturnType<typeof proofMetrics>;

/** What a request came to, for its metrics. */
export type Answered = {
  method: string;
  /** Template of the route; "none" for paths that are no route. */
  route: string;
  status: number;
  error: ErrorCode | undefined;
  ms: number;
};

const statusClasses = ['0xx', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** Counts an answer; strangers' methods and paths are one series. */
export const countAnswer = (metrics: Metrics, { method, route, status, error, ms }: Answered) => {
  const statusClass = statusClasses[Math.trunc(status / 100)] ?? 'other';
  metrics.requests.observe(ms, route === 'none' ? 'any' : method, route, statusClass);
  if (error !== undefined) metrics.errors.add(error);
};

/** What alerts look at exists before it happens: the step from nothing to one would not be seen. */
const begin = ({ sends, pumping }: Pick<Metrics, 'sends' | 'pumping'>): void => {
  pumping.start('held');
  for (const channel of ['whatsapp', 'telegram']) sends.start(channel, 'accepted', 'live');
  sends.start('none', 'failed', 'live');
};

/** The metrics of a process in a registry of their own. */
export const createMetrics = (): Metrics => {
  const registry = new Registry();
  const metrics = {
    registry,
    ...requestMetrics(registry),
    ...roomMetrics(registry),
    ...outsideMetrics(registry),
    ...proofMetrics(registry),
  };
  begin(metrics);
  return metrics;
};
