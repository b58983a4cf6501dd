// One attempt: signed, posted, judged; what it leads to is written down by whoever asked for it.
import type { KeyObject } from 'node:crypto';
import { webhookSecretContext } from '../accounts/webhook-secret.ts';
import type { Outbound } from '../infra/outbound.ts';
import type { Clock } from '../kernel/clock.ts';
import type { OutboundResult } from '../kernel/outbound.ts';
import type { Sealer } from '../kernel/secrets.ts';
import type { Delivery } from './delivery.ts';
import type { Egress } from './egress.ts';
import type { DisabledReason, Endpoint } from './endpoint-store.ts';
import type { Result } from './health.ts';
import { publicEventId } from './render.ts';
import { againForUs, type Judgement, judge, pauseOf, unsafe } from './rules.ts';
import { signedHeaders, signingKey } from './sign.ts';
import type { Recorded } from './work-store.ts';

export type SigningKeys = { of(endpoint: Endpoint): KeyObject[] };

const openedMost = 20_000;

/** The keys that sign for an endpoint now, the newest first; each secret is opened once and kept while it is used. */
export const createSigningKeys = (sealer: Sealer, clock: Clock): SigningKeys => {
  const opened = new Map<string, KeyObject>();
  const open = (accountId: string, sealed: string): KeyObject => {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const key = signingKey(sealer.open(sealed, webhookSecretContext(accountId)));
    if (opened.size >= openedMost) opened.clear();
    opened.set(sealed, key);
    return key;
  };
  return {
    of: ({ accountId, secrets: { present, before, beforeUntil } }) => {
      const counting = [present, beforeUntil > clock.now() ? before : null];
      return counting.flatMap((sealed) => (sealed === null ? [] : [open(accountId, sealed)]));
    },
  };
};

export type Attempted = {
  recorded: Recorded;
  result: Result;
  /** The endpoint wants to be left alone until then. */
  pauseUntil: number | undefined;
  /** The endpoint is to be given up at once. */
  giveUp: DisabledReason | undefined;
};

const nextOf = (judgement: Judgement, now: number): Recorded['to'] => {
  switch (judgement.kind) {
    case 'delivered':
      return { status: 'delivered', nextAttemptAt: null };
    case 'again':
      return { status: 'pending', nextAttemptAt: now + judgement.waitMs };
    case 'stop':
      // The endpoint is given up, the event is not: whoever takes it next holds it, or finds a new address.
      return { status: 'pending', nextAttemptAt: now };
    default:
      return { status: 'failed', nextAttemptAt: null };
  }
};

const giveUpOf = (judgement: Judgement): DisabledReason | undefined => {
  if (judgement.kind !== 'stop') return undefined;
  return unsafe.has(judgement.reason) ? 'unsafe_address' : 'gone';
};

const resultOf = (answer: OutboundResult, ok: boolean, counts: boolean): Result => {
  const answered = answer.kind === 'answer';
  return {
    ok,
    ms: answer.durationMs,
    answered,
    counts,
    timedOut: !answered && answer.reason === 'timeout',
    hard: !answered || answer.status >= 500,
  };
};

/** Tests and what was asked for by hand say nothing of how an endpoint fares. */
export const isUrgent = ({ manual, type }: Pick<Delivery, 'manual' | 'type'>): boolean =>
  manual || type === 'webhook.test';

export type Attempt = (delivery: Delivery, endpoint: Endpoint) => Promise<Attempted>;

export const createAttempt = (deps: {
  outbound: Outbound;
  keys: SigningKeys;
  egress: Egress;
  clock: Clock;
  version: string;
}): Attempt => {
  const { outbound, keys, egress, clock } = deps;
  const userAgent = `Tessera/${deps.version}`;

  const post = (delivery: Delivery, endpoint: Endpoint): Promise<OutboundResult> => {
    const { body, attempts } = delivery;
    const id = publicEventId(delivery.eventId);
    const headers = signedHeaders({ id, at: clock.now(), body, keys: keys.of(endpoint) });
    headers['content-type'] = 'application/json';
    headers['user-agent'] = userAgent;
    headers['tessera-attempt'] = String(attempts + 1);
    return outbound.post({ accountId: endpoint.accountId, url: endpoint.url, headers, body });
  };

  return async (delivery, endpoint) => {
    const answer = await post(delivery, endpoint);
    const now = clock.now();
    const since = delivery.releasedAt ?? delivery.createdAt;
    const number = delivery.tries + 1;
    const chance = Math.random();
    const ours = egress.isOurs(endpoint.url, answer);
    const judgement = ours ? againForUs(chance) : judge(answer, { number, since, now, chance });
    const ok = judgement.kind === 'delivered';
    const attempt = {
      number: delivery.attempts + 1,
      at: now,
      durationMs: answer.durationMs,
      status: answer.kind === 'answer' ? answer.status : null,
      reason: judgement.kind === 'delivered' ? null : judgement.reason,
    };
    return {
      recorded: {
        delivery,
        attempt,
        counted: !delivery.manual && !ours,
        to: nextOf(judgement, now),
      },
      result: resultOf(answer, ok, !ours && !isUrgent(delivery)),
      pauseUntil: pauseOf(answer, now),
      giveUp: giveUpOf(judgement),
    };
  };
};
