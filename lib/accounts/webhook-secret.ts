// The secret that signs an account's webhooks (Standard Webhooks): its form, its rotation, and which ones sign.
import { randomBytes } from 'node:crypto';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { SealContext, Sealer } from '../kernel/secrets.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Changer } from './profile.ts';
import type { AccountStore } from './store.ts';

/** How long the secret before a rotation goes on signing beside the new one (design section 4). */
export const secretOverlapMs = 24 * hour;

/** 24 random bytes, as the Standard Webhooks specification advises. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(24).toString('base64')}`;

export const webhookSecretContext = (accountId: string): SealContext => ({
  purpose: 'webhook-secret',
  record: accountId,
});

type Deps = { accounts: AccountStore; sealer: Sealer; clock: Clock };
type RotateDeps = Deps & {
  revocations: { announce(accountId: string): Promise<void> };
  news: NewsStore;
  announcer: Announcer;
  log: Log;
};

/**
 * A new secret, which signs within a second; the one before signs beside it for a day. A rotation within that day
 * ends the oldest: three signatures would be one more than anybody waits for.
 * @throws NOT_FOUND, and what `mayAct` refuses with
 */
export const rotateWebhookSecret = async (
  deps: RotateDeps,
  accountId: string,
  { act, mayAct }: Pick<Changer, 'act' | 'mayAct'>,
): Promise<{ secret: string; previousValidUntil: number | null }> => {
  const secret = newWebhookSecret();
  const { accounts, sealer, clock, revocations } = deps;
  const at = clock.now();
  const until = at + secretOverlapMs;
  const sealed = sealer.seal(secret, webhookSecretContext(accountId));
  const rotated = await accounts.rotateWebhookSecret(
    accountId,
    { sealed, until },
    { act, at, allow: (trx, account) => mayAct(trx, { account, act }) },
  );
  if (!rotated) throw fail('NOT_FOUND');
  await revocations.announce(accountId);
  await tellNews(deps, rotated.events);
  return { secret, previousValidUntil: rotated.hadOne ? until : null };
};

/** The secrets that sign for an account now, the newest first; none for an account that never had one. */
export const signingSecrets = async (
  { accounts, sealer, clock }: Deps,
  accountId: string,
): Promise<string[]> => {
  const { present, before, beforeUntil } = await accounts.webhookSecrets(accountId);
  const counts = before !== null && (beforeUntil ?? 0) > clock.now();
  return [present, counts ? before : null]
    .filter((sealed) => sealed !== null)
    .map((sealed) => sealer.open(sealed, webhookSecretContext(accountId)));
};
