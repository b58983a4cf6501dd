// Dead letters: seen with their reasons, given back to work, or thrown away; and the orders that do so.

import type { Letter } from '../../../lib/infra/queue/letters.ts';
import { invalid } from '../../../lib/kernel/errors.ts';
import { integer, list, object, optional, text, withDefault } from '../../../lib/kernel/schema.ts';
import { auditView } from '../../../lib/ops/audit-store.ts';
import { readPayload } from '../../../lib/ops/mask.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { act } from '../act.ts';
import { idParams, isoOrNull, jobParams } from '../fields.ts';
import { type OpsRequest, opsRoute } from '../route.ts';

const scannedMost = 2_000;

const letterView = (letter: Letter, now: number) => ({
  id: letter.id,
  message_id: letter.messageId,
  reason: letter.reason,
  attempts: letter.attempts,
  first_error: letter.firstError ?? null,
  last_error: letter.lastError ?? null,
  first_published_at: isoOrNull(letter.firstPublishedAtMs),
  first_failed_at: isoOrNull(letter.firstFailedAtMs),
  dead_at: isoOrNull(letter.deadAtMs),
  age_ms: letter.deadAtMs === undefined ? null : Math.max(0, now - letter.deadAtMs),
  queue: letter.queue ?? null,
  request_id: letter.requestId ?? null,
  by_broker: letter.byBroker,
  payload: readPayload(letter.content),
});

const reasonsOf = (letters: readonly Letter[]): Record<string, number> =>
  Object.fromEntries(
    [...Map.groupBy(letters, ({ reason }) => reason)].map(([reason, all]) => [reason, all.length]),
  );

export const deadLetters = opsRoute({
  ...{ method: 'GET', path: '/ops/api/dead/{job}' },
  summary: 'The oldest dead letters of a job; looking at them leaves them where they are.',
  params: jobParams,
  query: object({
    limit: withDefault(integer().min(1).max(500), 50),
    reason: optional(text().max(300)),
  }),
  handle: async (app, { params: { job }, query: { limit, reason } }) => {
    const { letters, total } = await app.letters.scan(job, scannedMost);
    const fitting = letters.filter((letter) => reason === undefined || letter.reason === reason);
    const now = app.clock.now();
    return {
      ...{ job, total, scanned: letters.length },
      reasons: reasonsOf(letters),
      oldest_at: isoOrNull(letters[0]?.deadAtMs),
      items: fitting.slice(0, limit).map((letter) => letterView(letter, now)),
    };
  },
});

const orderFields = {
  /** Ids of letters; left out: all that fit. */
  ids: optional(list(text().hex().length(16)).min(1).max(1_000)),
  reason: optional(text().max(300)),
  most: withDefault(integer().min(1).max(1_000_000), 1_000_000),
  per_second: withDefault(integer().min(1).max(5_000), 200),
};
type OrderBody = { ids?: string[]; reason?: string; most: number; per_second: number };

const begin = async (
  app: OpsApp,
  how: 'redrive' | 'purge',
  given: { job: string; body: OrderBody } & Pick<
    OpsRequest<undefined, undefined, undefined>,
    'caller' | 'requestId'
  >,
) => {
  const { job, body, caller, requestId } = given;
  const entry = await app.runs.begin({
    ...{ job, how, ids: body.ids ?? [], reason: body.reason, most: body.most },
    ...{ perSecond: body.per_second, actor: caller.actor, requestId },
  });
  return { run: auditView(entry) };
};

export const redriveLetters = opsRoute({
  ...{ method: 'POST', path: '/ops/api/dead/{job}/redrive' },
  summary:
    'Gives dead letters back to work: by id, by reason, or all; the order runs on by itself.',
  params: jobParams,
  body: object(orderFields),
  handle: (app, { params: { job }, body, ...rest }) =>
    begin(app, 'redrive', { job, body: body as OrderBody, ...rest }),
});

export const purgeLetters = opsRoute({
  ...{ method: 'POST', path: '/ops/api/dead/{job}/purge' },
  summary: 'Throws dead letters away for good; `confirm` repeats the name of the job.',
  params: jobParams,
  body: object({ ...orderFields, confirm: text().max(80) }),
  handle: (app, { params: { job }, body, ...rest }) => {
    if (body.confirm !== job) throw invalid({ field: 'confirm', issue: `must be ${job}` });
    return begin(app, 'purge', { job, body: body as unknown as OrderBody, ...rest });
  },
});

export const run = opsRoute({
  ...{ method: 'GET', path: '/ops/api/runs/{id}' },
  summary: 'An order over dead letters: how many it has settled, and whether it runs.',
  params: idParams,
  handle: async (app, { params: { id } }) => ({ run: auditView(await app.runs.find(id)) }),
});

export const stopRun = opsRoute({
  ...{ method: 'POST', path: '/ops/api/runs/{id}/stop' },
  summary: 'Ends an order; what it has not settled stays dead.',
  params: idParams,
  handle: async (app, request) => {
    const { id } = request.params;
    const { subject } = await app.runs.find(id);
    const what = { action: 'dead.stop', subject, detail: { run: id } };
    await act(app, request, what, () => app.runs.halt(id));
    return { stopping: true };
  },
});

export const deadRoutes = [deadLetters, redriveLetters, purgeLetters, run, stopRun];
