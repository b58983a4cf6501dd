// The stores: all that a process reads and writes, each over the sockets it needs.
import { createEpochStore } from './accounts/epoch-store.ts';
import { createFormerAddressStore } from './accounts/former-store.ts';
import { createSecurityLogStore } from './accounts/log-store.ts';
import { createAccountStore } from './accounts/store.ts';
import { createCheckoutStore } from './billing/checkout-store.ts';
import { createCreditStore } from './billing/credit-store.ts';
import { createFloorStore } from './billing/floor-store.ts';
import { createLedgerStore } from './billing/ledger-store.ts';
import { createPaymentStore } from './billing/payment-store.ts';
import { createPriceStore } from './billing/price-store.ts';
import { createReconcileStore } from './billing/reconcile-store.ts';
import { createCapacityStore } from './capacity/store.ts';
import { createThrottles } from './capacity/throttles.ts';
import { createConnectionStore } from './connections/store.ts';
import { countHolds, countIdempotency, countSends, countTotp, countVerifies } from './counting.ts';
import { createReservations } from './idempotency/reservations.ts';
import { createIdempotency } from './idempotency/store.ts';
import type { Database } from './infra/mysql.ts';
import type { Broker } from './infra/queue/broker.ts';
import type { RedisClient } from './infra/redis.ts';
import type { Clock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import type { Log } from './kernel/log.ts';
import { createRecipientKeys, type RecipientKeys } from './kernel/recipients.ts';
import { createSealer, type NamedKey } from './kernel/secrets.ts';
import { createRevocations } from './keys/revocations.ts';
import { createKeyStore } from './keys/store.ts';
import { createAdmission } from './limits/admission.ts';
import { createReadLimiter } from './limits/reads.ts';
import { createLinkStore } from './links/store.ts';
import { createAnnouncer } from './messages/announce.ts';
import { createHistory } from './messages/history.ts';
import { createNewsStore } from './messages/news-store.ts';
import { createMessageStore } from './messages/store.ts';
import { createLiveStore } from './otp/store.ts';
import { createPlatform } from './platform/overrides.ts';
import type { Metrics } from './pulse/metrics.ts';
import { createPumpingStore } from './pumping/store.ts';
import { createRecountStore } from './reports/recount-store.ts';
import { createRollupStore } from './reports/rollup-store.ts';
import { createReportStore } from './reports/store.ts';
import { createTotalsStore } from './reports/totals-store.ts';
import { createRetentionStore } from './retention/store.ts';
import { createChallengeStore } from './security/challenge-store.ts';
import { createCredentialStore } from './security/credential-store.ts';
import { createFactorStore } from './security/factor-store.ts';
import { createRecoveryCodes } from './security/recovery-codes.ts';
import { createSenderWatch } from './sender/health.ts';
import { createPauses } from './sender/pauses.ts';
import { createResolveSender } from './sender/resolve.ts';
import { createSenderTally } from './sender/tally.ts';
import { createSourceStore } from './sessions/source-store.ts';
import { createSessionStore } from './sessions/store.ts';
import { createSignupStore } from './signup/store.ts';
import { createAttemptStore } from './totp/attempt-store.ts';
import { createGuesses } from './totp/guesses.ts';
import { createTotpStore } from './totp/store.ts';
import { createWebhookStore } from './webhooks/store.ts';

type Sockets = { db: Database; redis: RedisClient; broker: Broker; metrics: Metrics };
type Surroundings = { config: Config; clock: Clock; log: Log };

/** The key of keyed names, which never changes. */
const pepperOf = ({ phonePepper: [pepper] }: Config): NamedKey => {
  if (!pepper) throw new Error('PHONE_PEPPER is empty');
  return pepper;
};

/** The keyed names of phone numbers. */
export const phoneKeysOf = (config: Config): RecipientKeys => createRecipientKeys(pepperOf(config));

/** A send: until its worker answers, what a call without an answer takes, and the wait for a receipt. */
const longestSendMs = (config: Config): number =>
  config.sendDeadlineMs +
  config.reachabilityWindowMs +
  Math.max(config.whatsappTimeoutMs + config.whatsappEchoWaitMs, config.telegramTimeoutMs);

/** Every store over the sockets of a process, and what answers from them. */
export const openStores = (
  { db, redis, broker, metrics }: Sockets,
  { config, clock, log }: Surroundings,
) => {
  const prefix = config.keyPrefix;
  const connections = createConnectionStore(db);
  const prices = createPriceStore(db);
  const revocations = createRevocations({ redis, prefix, store: createEpochStore(db), log });
  const sealer = createSealer(config.sealingKeys);
  return {
    accounts: createAccountStore(db),
    formerAddresses: createFormerAddressStore(db),
    securityLog: createSecurityLogStore(db),
    signups: createSignupStore(db),
    challenges: createChallengeStore(db),
    credentials: createCredentialStore(db),
    factors: createFactorStore(db),
    recoveryCodes: createRecoveryCodes(pepperOf(config)),
    keys: createKeyStore(db),
    sessions: createSessionStore(db),
    sources: createSourceStore(db, pepperOf(config)),
    ...{ connections, revocations, sealer },
    links: createLinkStore({ db, redis, prefix }),
    live: countVerifies(metrics, createLiveStore(redis, prefix)),
    messages: createMessageStore(db, config.whatsappDeliverySeconds),
    reservations: createReservations(db, () => clock.now()),
    history: createHistory(db),
    idempotency: countIdempotency(
      metrics,
      createIdempotency({ redis, prefix, requestMs: longestSendMs(config) }),
    ),
    admission: createAdmission({ redis, prefix }),
    evidence: countHolds(metrics, createPumpingStore(redis, prefix)),
    reads: createReadLimiter(redis, prefix, {
      onFailOpen: (name) => {
        metrics.failOpen.add(name);
        log.warn({ limit: name }, 'limit decided without redis');
      },
    }),
    recipients: phoneKeysOf(config),
    announcer: countSends(metrics, createAnnouncer(broker)),
    ledger: createLedgerStore(db),
    news: createNewsStore(db),
    payers: createPaymentStore(db),
    checkouts: createCheckoutStore(db),
    credit: createCreditStore(redis, prefix),
    prices,
    platform: createPlatform({ ...{ db, config, revocations, clock, log } }),
    books: createReconcileStore(db),
    floor: createFloorStore(db),
    reports: createReportStore(db),
    rollupStore: createRollupStore(db),
    recounts: createRecountStore(db),
    retention: createRetentionStore(db),
    totals: createTotalsStore(db),
    capacity: createCapacityStore(db),
    throttles: createThrottles(redis, prefix, log),
    webhooks: createWebhookStore(db),
    totp: createTotpStore(db),
    attempts: countTotp(metrics, createAttemptStore(db)),
    totpSealer: config.totpKeys.length > 0 ? createSealer(config.totpKeys) : undefined,
    guesses: createGuesses(redis, prefix),
    resolveSender: createResolveSender({ config, connections, revocations, sealer, clock }),
    senders: createSenderWatch({ redis, prefix, clock, log }),
    pauses: createPauses({ prices, revocations, clock, log }),
    tally: createSenderTally({ redis, prefix, clock, log }),
  };
};
