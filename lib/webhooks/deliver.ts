// Delivering: what is due is signed and posted, a few at a time per account, so that nobody's slow endpoint is others'.

import type { AccountStore } from '../accounts/store.ts';
import { signingSecrets } from '../accounts/webhook-secret.ts';
import type { Outbound } from '../infra/outbound.ts';
import type { Chore } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { OutboundResult } from '../kernel/outbound.ts';
import { describeError } from '../kernel/redact.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { createBreakers } from './breaker.ts';
import { publicEventId } from './render.ts';
import { giveUpMs, type Judgement, judge } from './rules.ts';
import { signedHeaders } from './sign.ts';
import type { Delivery, WebhookStore } from './store.ts';

export type DeliverDeps = {
  webhooks: WebhookStore;
  accounts: AccountStore;
  sealer: Sealer;
  outbound: Outbound;
  clock: Clock;
  log: Log;
  version: string;
};

/** At once, per account and in all, in one process. */
const perAccount = 4;
const inAll = 200;
const leaseMs = minute;
const pollMs = second;
const takeMost = 100;

export type Deliverer = Chore & {
  /** Something is due: looks at once. */
  kick(): void;
};

const attemptOf = (result: OutboundResult, judgement: Judgement, number: number, at: number) => ({
  ...{ number, at, durationMs: result.durationMs },
  status: result.kind === 'answer' ? result.status : null,
  reason: judgement.kind === 'delivered' ? null : judgement.reason,
});

const nextOf = (judgement: Judgement, now: number) => {
  switch (judgement.kind) {
    case 'delivered':
      return { status: 'delivered' as const, nextAttemptAt: null };
    case 'again':
      return { status: 'pending' as const, nextAttemptAt: now + judgement.waitMs };
    default:
      return { status: 'failed' as const, nextAttemptAt: null };
  }
};

const post = async (deps: DeliverDeps, delivery: Delivery, url: string) => {
  const { accounts, sealer, clock, outbound, version } = deps;
  const secrets = await signingSecrets({ accounts, sealer, clock }, delivery.accountId);
  const { body, attempts } = delivery;
  const id = publicEventId(delivery.eventId);
  const headers = {
    ...signedHeaders({ id, at: clock.now(), body, secrets }),
    'content-type': 'application/json',
    'user-agent': `Tessera/${version}`,
    'tessera-attempt': String(attempts + 1),
  };
  return outbound.post(url, headers, body);
};

/** One attempt, written down with what follows from it. */
const attempt = async (deps: DeliverDeps, delivery: Delivery): Promise<Judgement['kind']> => {
  const { webhooks, clock } = deps;
  const endpoint = await webhooks.endpoint(delivery.accountId);
  const number = delivery.attempts + 1;
  if (!endpoint || endpoint.disabled) {
    await webhooks.record(
      delivery,
      { number, at: clock.now(), status: null, reason: 'no_endpoint', durationMs: 0 },
      { status: endpoint ? 'held' : 'failed', nextAttemptAt: null },
    );
    return 'stop';
  }
  const result = await post(deps, delivery, endpoint.url);
  const now = clock.now();
  const { createdAt, accountId } = delivery;
  const judgement = judge(result, { number, createdAt, now, chance: Math.random() });
  await webhooks.record(
    delivery,
    attemptOf(result, judgement, number, now),
    nextOf(judgement, now),
  );
  await noteHealth(deps, accountId, judgement, now);
  return judgement.kind;
};

const noteHealth = async (
  { webhooks, log }: DeliverDeps,
  accountId: string,
  judgement: Judgement,
  now: number,
): Promise<void> => {
  const failed = judgement.kind !== 'delivered';
  const since = await webhooks.noteHealth(accountId, failed ? now : null);
  const gone = judgement.kind === 'stop' && judgement.reason === 'gone';
  const dead = since !== null && now - since >= giveUpMs;
  if (!gone && !dead) return;
  await webhooks.disable(accountId, now, gone ? 'gone' : 'failing');
  log.warn(
    { account_id: accountId, reason: gone ? 'gone' : 'failing' },
    'webhook endpoint given up',
  );
};

/** Takes what is due from MySQL, once a second and when told; several processes share the work by leases. */
export const createDeliverer = (deps: DeliverDeps): Deliverer => {
  const { webhooks, clock, log } = deps;
  const running = new Map<string, number>();
  const breakers = createBreakers(clock);
  const open = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let again = false;
  let stopped = false;

  const change = (accountId: string, by: number): void => {
    const count = (running.get(accountId) ?? 0) + by;
    if (count > 0) running.set(accountId, count);
    else running.delete(accountId);
  };

  const work = async (delivery: Delivery): Promise<void> => {
    try {
      breakers.note(delivery.accountId, (await attempt(deps, delivery)) === 'delivered');
    } catch (error) {
      // Its lease ends by itself, and then it comes again.
      log.warn({ reason: describeError(error) }, 'webhook attempt not finished');
    } finally {
      change(delivery.accountId, -1);
    }
  };

  const start = (delivery: Delivery): void => {
    change(delivery.accountId, 1);
    const tracked = work(delivery).finally(() => {
      open.delete(tracked);
      kick();
    });
    open.add(tracked);
  };

  const busyAccounts = (): string[] => [
    ...[...running].filter(([, count]) => count >= perAccount).map(([accountId]) => accountId),
    ...breakers.open(),
  ];

  /** Of one account only what fits beside what runs; the rest is given back at once. */
  const fits = ({ accountId }: Delivery): boolean => (running.get(accountId) ?? 0) < perAccount;

  const look = async (): Promise<void> => {
    const limit = Math.min(inAll - open.size, takeMost);
    if (limit <= 0) return;
    const now = clock.now();
    const due = await webhooks.takeDue({ now, leaseMs, limit, busy: busyAccounts() });
    for (const delivery of due) {
      if (fits(delivery)) start(delivery);
      else await webhooks.redeliver(delivery.accountId, delivery.id, now);
    }
    // More of others may stand behind a full batch.
    if (due.length === limit) again = true;
  };

  const kick = (): void => {
    if (stopped) return;
    again = true;
    looking ??= (async () => {
      try {
        while (again && !stopped) {
          again = false;
          await look();
        }
      } catch (error) {
        log.warn({ reason: describeError(error) }, 'due webhooks not read');
      } finally {
        looking = undefined;
      }
    })();
  };

  return {
    kick,
    start: () => {
      timer = setInterval(kick, pollMs);
      kick();
    },
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await looking;
      await Promise.all(open);
    },
  };
};
