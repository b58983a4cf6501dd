// Accounts: found, looked at, suspended and taken back, credited, priced, and their requests for capacity.
import { emailKey } from '../../../lib/accounts/rules.ts';
import { capacityView, findCapacity, reviewCapacity } from '../../../lib/capacity/request.ts';
import { fail } from '../../../lib/kernel/errors.ts';
import { newId } from '../../../lib/kernel/ids.ts';
import { fromUsd } from '../../../lib/kernel/money.ts';
import { plainLine, plainLines } from '../../../lib/kernel/plain-text.ts';
import {
  flag,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  text,
  withDefault,
} from '../../../lib/kernel/schema.ts';
import { accountLine, describeAccount } from '../../../lib/ops/accounts.ts';
import { type Booked, book } from '../../../lib/ops/booking.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { loginHash } from '../../../lib/pulse/lines.ts';
import { forceLogout, reinstateAccount, suspendAccount } from '../../../lib/security/suspend.ts';
import { sourceKeyOf } from '../../source.ts';
import { act } from '../act.ts';
import { country, idParams, idText, pageQuery, usd } from '../fields.ts';
import { opsRoute } from '../route.ts';

const pageOfAccounts = async (
  app: OpsApp,
  q: string,
  { before, limit }: { before?: string | undefined; limit: number },
) => {
  const found = await app.lookup.search(q.trim(), { before, limit: limit + 1 });
  const items = found.slice(0, limit);
  const next = found.length > limit ? (items.at(-1)?.account.id ?? null) : null;
  return { items: items.map(accountLine), next_before: next };
};

export const listAccounts = opsRoute({
  ...{ method: 'GET', path: '/ops/api/accounts' },
  summary: 'All accounts, the newest first.',
  query: object(pageQuery),
  handle: (app, { query }) => pageOfAccounts(app, '', query),
});

// What people search by (a number, an address) is in the body: addresses end up in logs.
export const searchAccounts = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/search' },
  summary:
    'Accounts by id, beginning of e-mail address or phone, or part of name or company; changes nothing.',
  body: object({ ...pageQuery, q: withDefault(text().max(254).allow(''), '') }),
  handle: (app, { body: { q, ...part } }) => pageOfAccounts(app, q, part),
});

export const logNames = opsRoute({
  ...{ method: 'POST', path: '/ops/api/log-names' },
  summary:
    'The keyed hashes (email_hash, source_hash) under which an e-mail address and an IP address stand in the lines of logins; changes nothing.',
  body: object({ email: optional(text().max(254)), address: optional(text().max(64)) }),
  handle: async (app, { body: { email, address } }) => ({
    email_hash: email === undefined ? null : loginHash(app.recipients, 'email', emailKey(email)),
    source_hash:
      address === undefined ? null : loginHash(app.recipients, 'source', sourceKeyOf(address)),
  }),
});

export const oneAccount = opsRoute({
  ...{ method: 'GET', path: '/ops/api/accounts/{id}' },
  summary: 'One account: state, balance, limits, prices, recent failures.',
  params: idParams,
  handle: (app, { params: { id } }) => describeAccount(app, id),
});

const requireAccount = async (app: OpsApp, id: string): Promise<void> => {
  if (!(await app.lookup.find(id))) throw fail('NOT_FOUND');
};

export const suspendOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/suspend' },
  summary: 'Suspends an account: keys and sessions are refused everywhere within a second.',
  params: idParams,
  body: object({ reason: plainLine().min(1).max(200) }),
  handle: async (app, request) => {
    const { params, body, requestId } = request;
    await requireAccount(app, params.id);
    const what = {
      ...{ action: 'account.suspend', subject: params.id, detail: { reason: body.reason } },
      affected: Number,
    };
    const changed = await act(app, request, what, () =>
      suspendAccount(app, { accountId: params.id, reason: body.reason, requestId }),
    );
    return { ...(await describeAccount(app, params.id)), changed };
  },
});

export const reinstateOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/reinstate' },
  summary: 'Takes a suspended account back.',
  params: idParams,
  handle: async (app, request) => {
    const { id } = request.params;
    await requireAccount(app, id);
    const what = { action: 'account.reinstate', subject: id, detail: {}, affected: Number };
    const changed = await act(app, request, what, () => reinstateAccount(app, id));
    return { ...(await describeAccount(app, id)), changed };
  },
});

export const logoutOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/logout' },
  summary:
    'Ends all sessions of an account and its logins under way, within a second; its keys go on.',
  params: idParams,
  handle: async (app, request) => {
    const { params, requestId } = request;
    await requireAccount(app, params.id);
    const what = {
      ...{ action: 'account.logout', subject: params.id, detail: {} },
      affected: Number,
    };
    const ended = await act(app, request, what, () => forceLogout(app, params.id, requestId));
    return { ...(await describeAccount(app, params.id)), ended };
  },
});

export const creditOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/credit' },
  summary: 'Books a payment that was received, or a correction up or down (adjust), in USD.',
  params: idParams,
  body: object({
    kind: withDefault(oneOf('deposit', 'adjust'), 'deposit'),
    amount: usd().invalid(0).messages({ 'any.invalid': 'must not be 0' }),
    /** Names the transfer: booked once however often it is asked for. */
    reference: optional(text().pattern(/^[\w.:-]{1,60}$/)),
    note: nullable(plainLine().min(1).max(200)),
  }),
  handle: async (app, request) => {
    const { params, body } = request;
    await requireAccount(app, params.id);
    if (body.kind === 'deposit' && body.amount < 0) throw negativeDeposit();
    const name = body.reference ?? `ops-${newId()}`;
    const { kind, amount, note } = body;
    const what = {
      ...{ action: `account.${kind}`, subject: params.id, detail: { amount, name, note } },
      affected: ({ booked }: Booked) => Number(booked),
    };
    const command = { accountId: params.id, amountMicros: fromUsd(amount), name, note };
    const booked = await act(app, request, what, () => book(app, kind, command));
    return { ...booked, account: await describeAccount(app, params.id) };
  },
});

const negativeDeposit = () =>
  fail('VALIDATION_ERROR', {
    details: [
      {
        field: 'amount',
        issue: 'must be positive for a payment; a correction (adjust) goes both ways',
      },
    ],
  });

export const priceOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/price' },
  summary: 'The account’s own price for a country, in USD; null takes it away.',
  params: idParams,
  body: object({
    country: country(),
    price: nullable(usd().min(0).max(1_000)),
  }),
  handle: async (app, request) => {
    const { params, body } = request;
    await requireAccount(app, params.id);
    const what = { action: 'account.price', subject: params.id, detail: body };
    await act(app, request, what, async () => {
      const micros = body.price === null ? null : fromUsd(body.price);
      await app.prices.setOverride(params.id, body.country, micros);
      await app.revocations.announce(params.id);
    });
    return describeAccount(app, params.id);
  },
});

export const sharedNumberOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/shared-number' },
  summary: 'Pauses the shared number for one account, or lets it send again.',
  params: idParams,
  body: object({ paused: flag() }),
  handle: async (app, request) => {
    const { params, body } = request;
    await requireAccount(app, params.id);
    const what = {
      ...{ action: 'account.shared_number', subject: params.id, detail: body },
      affected: Number,
    };
    const changed = await act(app, request, what, async () => {
      const differs = await app.prices.setSharedPaused(params.id, body.paused);
      await app.revocations.announce(params.id);
      return differs;
    });
    return { ...(await describeAccount(app, params.id)), changed };
  },
});

const pendingMost = 100;

export const pendingCapacity = opsRoute({
  ...{ method: 'GET', path: '/ops/api/capacity' },
  summary: 'Requests for capacity that wait for a review, the oldest first.',
  handle: async (app) => {
    const found = await app.lookup.pendingCapacity(pendingMost + 1);
    const items = await Promise.all(
      found.slice(0, pendingMost).map(async ({ accountId, id }) => ({
        account_id: accountId,
        ...capacityView(await findCapacity(app, accountId, id)),
      })),
    );
    return { items, /** Whether others wait behind these. */ more: found.length > pendingMost };
  },
});

export const reviewOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/accounts/{id}/capacity/{request}' },
  summary: 'A word on a pending request: sends a minute that are granted, or null to reject it.',
  params: object({ id: idText(), request: idText() }),
  body: object({
    per_minute: nullable(integer()),
    note: nullable(plainLines().min(1).max(500)),
  }),
  handle: async (app, request) => {
    const { params, body, requestId } = request;
    await findCapacity(app, params.id, params.request);
    const detail = { request: params.request, ...body };
    const what = { action: 'account.capacity', subject: params.id, detail };
    await act(app, request, what, () =>
      reviewCapacity(app, {
        ...{ accountId: params.id, id: params.request, requestId },
        ...{ note: body.note, perMinute: body.per_minute },
      }),
    );
    return capacityView(await findCapacity(app, params.id, params.request));
  },
});

export const accountRoutes = [
  ...[listAccounts, searchAccounts, logNames, oneAccount],
  ...[suspendOne, reinstateOne, logoutOne, creditOne, priceOne, sharedNumberOne],
  ...[pendingCapacity, reviewOne],
];
