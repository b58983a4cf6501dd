// What holds for the whole platform: switches, prices, held prefixes, the books.
import { reconcile } from '../../../lib/billing/reconcile.ts';
import { inTimeOrNull } from '../../../lib/kernel/in-time.ts';
import { fromUsd, toUsd } from '../../../lib/kernel/money.ts';
import { flag, list, nullable, object, oneOf, optional, text } from '../../../lib/kernel/schema.ts';
import { type ResealStep, resealStep } from '../../../lib/ops/reseal.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { setPlatform } from '../../../lib/platform/overrides.ts';
import { lastProof } from '../../../lib/pulse/books.ts';
import { act } from '../act.ts';
import { country, isoOrNull, usd } from '../fields.ts';
import { opsRoute } from '../route.ts';

const switches = ['shared_number', 'trial'] as const;

const pricesOf = async (app: OpsApp) => {
  const rows = await app.prices.platform();
  return rows.map(({ country, priceMicros, costMicros }) => ({
    country,
    price: priceMicros === null ? null : toUsd(priceMicros),
    cost: toUsd(costMicros),
  }));
};

/** What Redis knows is left out when it keeps silent; the rest is not there. */
const patienceMs = 2_000;

const heldOf = async (app: OpsApp) => {
  const held = await inTimeOrNull(app.evidence.heldSince(undefined), patienceMs);
  const now = app.clock.now();
  if (held === null) return null;
  return (held?.holds ?? [])
    .filter(({ until }) => until > now)
    .map((hold) => ({
      account_id: hold.accountId,
      /** Null: the whole country. */
      prefix: hold.prefix,
      country: hold.country,
      reason: hold.reason,
      early: hold.early,
      settled: hold.settled,
      verified: hold.verified,
      /** What the accounts that were judged together did; one account unless the reason is across_accounts. */
      together: { accounts: hold.accounts, ...hold.together },
      level: hold.level,
      since: isoOrNull(hold.since),
      until: isoOrNull(hold.until),
    }));
};

const booksOf = async (app: OpsApp) => {
  const pulses = await inTimeOrNull(app.pulses.readPulses(), patienceMs);
  const proof = lastProof(pulses ?? []);
  return proof && { at: isoOrNull(proof.at), mismatches: proof.mismatches };
};

const describe = async (app: OpsApp) => {
  const { config } = app;
  const [paused, prices, held, books] = await Promise.all([
    app.prices.pausedSince(),
    pricesOf(app),
    heldOf(app),
    booksOf(app),
  ]);
  return {
    switches: switches.map((name) => ({
      name,
      paused: paused.has(name),
      since: isoOrNull(paused.get(name)),
    })),
    trial_verifications: config.trialVerifications,
    shared_countries: [...app.platform.sharedCountries()],
    default_price: toUsd(config.priceMicros),
    prices,
    pumping_guard: { mode: app.platform.guardMode(), /** Null while Redis is away. */ held },
    /** When a worker last compared them; null when none tells of it. */
    books,
  };
};

export const platformNow = opsRoute({
  ...{ method: 'GET', path: '/ops/api/platform' },
  summary:
    'Switches, prices, countries of the shared number, and what the guard against pumping holds.',
  handle: describe,
});

export const changeSwitch = opsRoute({
  ...{ method: 'POST', path: '/ops/api/platform/switch' },
  summary: 'Pauses the shared number or the trial for everybody, or lets them go on.',
  body: object({ name: oneOf(...switches), paused: flag() }),
  handle: async (app, request) => {
    const { name, paused } = request.body;
    const action = paused ? 'platform.pause' : 'platform.resume';
    const what = { action, subject: name, detail: {}, affected: Number };
    const changed = await act(app, request, what, async () => {
      const differs = await app.prices.setPaused(name, paused, app.clock.now());
      await app.revocations.announce();
      return differs;
    });
    return { ...(await describe(app)), changed };
  },
});

export const changeCountries = opsRoute({
  ...{ method: 'POST', path: '/ops/api/platform/countries' },
  summary: 'Countries the shared number serves; none: all. Null: those of the environment again.',
  body: object({ countries: nullable(list(country()).max(250)) }),
  handle: async (app, request) => {
    const { countries: wanted } = request.body;
    const what = { action: 'platform.countries', subject: 'shared_number', detail: request.body };
    await act(app, request, what, () =>
      setPlatform(app, 'shared_countries', wanted === null ? null : wanted.join(',')),
    );
    return describe(app);
  },
});

export const changeGuard = opsRoute({
  ...{ method: 'POST', path: '/ops/api/platform/guard' },
  summary: 'How the guard against pumping works; null: as the environment says again.',
  body: object({ mode: nullable(oneOf('off', 'shadow', 'enforce')) }),
  handle: async (app, request) => {
    const { mode } = request.body;
    const what = { action: 'platform.guard', subject: 'fraud_guard', detail: { mode } };
    await act(app, request, what, () => setPlatform(app, 'fraud_guard', mode));
    return describe(app);
  },
});

export const changePrice = opsRoute({
  ...{ method: 'POST', path: '/ops/api/platform/price' },
  summary: 'Price and cost of a country, in USD; a price of null means: not sold.',
  body: object({
    country: country(),
    price: nullable(usd().min(0).max(1_000)),
    cost: usd().min(0).max(1_000),
  }),
  handle: async (app, request) => {
    const { country: of, price, cost } = request.body;
    const what = { action: 'platform.price', subject: of, detail: { price, cost } };
    await act(app, request, what, async () => {
      const priceMicros = price === null ? null : fromUsd(price);
      await app.prices.setPrice(of, { priceMicros, costMicros: fromUsd(cost) });
      await app.revocations.announce();
    });
    return describe(app);
  },
});

export const removePrice = opsRoute({
  ...{ method: 'POST', path: '/ops/api/platform/price/remove' },
  summary: 'A country has no price of its own any more: it is sold at the price for everywhere.',
  body: object({ country: country() }),
  handle: async (app, request) => {
    const { country: of } = request.body;
    const detail = { removed: true };
    const what = { action: 'platform.price', subject: of, detail, affected: Number };
    const changed = await act(app, request, what, async () => {
      const was = await app.prices.removePrice(of);
      await app.revocations.announce();
      return was;
    });
    return { ...(await describe(app)), changed };
  },
});

export const proveBooks = opsRoute({
  ...{ method: 'POST', path: '/ops/api/reconcile' },
  summary:
    'Proves that balances, ledger, messages and TOTP log tell the same story; changes nothing.',
  handle: async (app) => {
    const { accounts, differences, through } = await reconcile(app);
    return {
      ...{ accounts, through: isoOrNull(through), agree: differences.length === 0 },
      differences: differences.slice(0, 500).map(({ check, accountId, detail }) => ({
        ...{ check, account_id: accountId, detail },
      })),
      difference_count: differences.length,
    };
  },
});

export const resealSecrets = opsRoute({
  ...{ method: 'POST', path: '/ops/api/secrets/reseal' },
  summary:
    'Seals secrets at rest anew under the newest key, for about three seconds; `next` is where another call goes on.',
  body: object({ after: optional(text().max(60)) }),
  handle: (app, request) => {
    const { after } = request.body;
    const what = {
      ...{ action: 'secrets.reseal', subject: 'platform', detail: { after: after ?? null } },
      affected: ({ resealed }: ResealStep) => resealed,
    };
    return act(app, request, what, () => resealStep(app, after));
  },
});

export const platformRoutes = [
  platformNow,
  changeSwitch,
  changeCountries,
  changeGuard,
  changePrice,
  removePrice,
  proveBooks,
  resealSecrets,
];
