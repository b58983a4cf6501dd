// Asking for more capacity, taking it back, and its review; only aggregate limits ever change by it.
import { cursorOf } from '../kernel/cursor.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import { customTierBounds } from '../limits/rules.ts';
import { accountEvent } from '../messages/events.ts';
import { type TellerDeps, tellNews } from '../messages/news.ts';
import {
  type CapacityRequest,
  type CapacityStatus,
  reviewedTierMs,
  schemaVersion,
  tierFor,
} from './rules.ts';
import type { CapacityStore } from './store.ts';

export type CapacityDeps = TellerDeps & {
  capacity: CapacityStore;
  revocations: Pick<Revocations, 'announce'>;
  log: Log;
};

export type CapacityWish = Pick<
  CapacityRequest,
  | 'accountId'
  | 'sustained'
  | 'burst'
  | 'expectedSustained'
  | 'expectedPeak'
  | 'justification'
  | 'facts'
>;

const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

export const capacityView = (request: CapacityRequest) => ({
  id: request.id,
  requested_sustained_per_minute: request.sustained,
  requested_burst_per_10_seconds: request.burst,
  expected_sustained_per_minute: request.expectedSustained,
  expected_peak_per_minute: request.expectedPeak,
  business_justification: request.justification,
  supporting_facts: request.facts,
  status: request.status,
  created_at: new Date(idTime(request.id)).toISOString(),
  updated_at: new Date(request.updatedAt).toISOString(),
  cancelled_at: isoOrNull(request.cancelledAt),
  reviewed_at: isoOrNull(request.reviewedAt),
});

/** The wrapper of spec section 2. */
export const wrapped = (request: CapacityRequest) => ({
  schema_version: schemaVersion as typeof schemaVersion,
  capacity_request: capacityView(request),
});

type About = Pick<CapacityRequest, 'id' | 'accountId'> & { requestId: string };

/** The event of a change, to be written with it. */
const eventOf = ({ id, accountId, requestId }: About, status: CapacityStatus, at: number) =>
  accountEvent('capacity_request.updated', {
    ...{ accountId, mode: 'live', at, requestId, subject: `${id} ${status}` },
    data: { capacity_request_id: id, status },
  });

/**
 * POST /v1/clients/capacity-requests.
 * @throws CAPACITY_REQUEST_PENDING when one of the account waits for its review
 */
export const requestCapacity = async (
  deps: CapacityDeps,
  wish: CapacityWish,
  requestId: string,
): Promise<CapacityRequest> => {
  const id = newId();
  const request: CapacityRequest = {
    ...wish,
    ...{ id, status: 'pending', updatedAt: idTime(id), cancelledAt: null, reviewedAt: null },
  };
  const told = eventOf({ ...request, requestId }, 'pending', deps.clock.now());
  if (!(await deps.capacity.insert(request, told))) {
    throw fail('CAPACITY_REQUEST_PENDING');
  }
  await tellNews(deps, [told]);
  return request;
};

/** GET /v1/clients/capacity-requests/{id}. @throws NOT_FOUND */
export const findCapacity = async (
  { capacity }: Pick<CapacityDeps, 'capacity'>,
  accountId: string,
  id: string,
): Promise<CapacityRequest> => {
  const found = await capacity.find(accountId, id);
  if (!found) throw fail('NOT_FOUND');
  return found;
};

/** GET /v1/clients/capacity-requests: newest first. */
export const listCapacity = async (
  { capacity }: Pick<CapacityDeps, 'capacity'>,
  accountId: string,
  { before, limit }: { before?: string | undefined; limit: number },
) => {
  const found = await capacity.list(accountId, { before, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const next = found.length > limit && last ? cursorOf(last.id) : null;
  return { items: items.map(capacityView), next_before: next };
};

/**
 * DELETE /v1/clients/capacity-requests/{id}: takes a pending request back; one that was taken back stays so.
 * @throws NOT_FOUND, VALIDATION_ERROR (it was reviewed)
 */
export const cancelCapacity = async (
  deps: CapacityDeps,
  { accountId, id, requestId }: { accountId: string; id: string; requestId: string },
): Promise<CapacityRequest> => {
  const at = deps.clock.now();
  const told = eventOf({ accountId, id, requestId }, 'cancelled', at);
  const cancelled = { status: 'cancelled' as const, at, note: null, tier: null, told };
  if (await deps.capacity.settle(accountId, id, cancelled)) await tellNews(deps, [told]);
  const now = await findCapacity(deps, accountId, id);
  if (now.status === 'cancelled') return now;
  throw invalid({ field: 'id', issue: `was ${now.status} already` });
};

/**
 * A reviewer's word on a pending request, for the ops listener: approval sets the account's tier, which ends by
 * itself; recipient and global limits stay what they are.
 * @throws NOT_FOUND (nothing pending), VALIDATION_ERROR
 */
export const reviewCapacity = async (
  deps: CapacityDeps,
  given: {
    accountId: string;
    id: string;
    requestId: string;
    note: string | null;
    /** Sends a minute that are granted; null: rejected. */
    perMinute: number | null;
    expiresAt?: number;
  },
): Promise<void> => {
  const { accountId, id, requestId, note, perMinute } = given;
  const { min, max } = customTierBounds;
  if (perMinute !== null && (perMinute < min || perMinute > max || !Number.isInteger(perMinute))) {
    throw invalid({ field: 'per_minute', issue: `must be a whole number from ${min} to ${max}` });
  }
  const at = deps.clock.now();
  const status = perMinute === null ? 'rejected' : 'approved';
  const told = eventOf({ accountId, id, requestId }, status, at);
  const tier =
    perMinute === null ? null : tierFor(perMinute, given.expiresAt ?? at + reviewedTierMs);
  const to = { status, at, note, tier, told } as const;
  if (!(await deps.capacity.settle(accountId, id, to))) throw fail('NOT_FOUND');
  if (tier !== null) await deps.revocations.announce(accountId);
  await tellNews(deps, [told]);
};
