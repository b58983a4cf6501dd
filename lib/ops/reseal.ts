// Resealing: every secret at rest under the newest key, in steps, so that an older key can be taken away.
import { webhookSecretContext } from '../accounts/webhook-secret.ts';
import { pinContext, tokenContext } from '../connections/provider.ts';
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import { invalid } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { NamedKey, SealContext, Sealer } from '../kernel/secrets.ts';
import { factorContext } from '../security/factor.ts';
import { signupKeysContext } from '../signup/create.ts';
import { seedContext } from '../totp/enroll.ts';
import type { ResealStore, SealedColumn } from './reseal-store.ts';

type Place = SealedColumn & {
  what: string;
  keys: 'SEALING_KEYS' | 'TOTP_KEYS';
  context(key: string): SealContext;
};

const accounts = { table: 'accounts', key: 'id', keyIs: 'id', keys: 'SEALING_KEYS' } as const;
const factors = {
  table: 'account_factors',
  key: 'account_id',
  keyIs: 'id',
  keys: 'SEALING_KEYS',
} as const;

/** Every column that holds secrets for longer than a day. */
export const sealedPlaces: readonly Place[] = [
  {
    ...accounts,
    what: 'webhook secrets',
    column: 'webhook_secret',
    context: webhookSecretContext,
  },
  {
    ...accounts,
    what: 'webhook secrets before a rotation',
    column: 'webhook_secret_before',
    context: webhookSecretContext,
  },
  { ...accounts, what: 'first keys', column: 'signup_keys', context: signupKeysContext },
  { ...factors, what: 'second factors', column: 'seed', context: factorContext },
  {
    ...factors,
    what: 'second factors to be confirmed',
    column: 'pending_seed',
    context: factorContext,
  },
  {
    what: 'WhatsApp tokens',
    table: 'whatsapp_connections',
    key: 'id',
    keyIs: 'id',
    keys: 'SEALING_KEYS',
    column: 'sealed_token',
    context: tokenContext,
  },
  {
    what: 'WhatsApp PINs',
    table: 'whatsapp_pins',
    key: 'phone_number_id',
    keyIs: 'text',
    keys: 'SEALING_KEYS',
    column: 'sealed_pin',
    context: pinContext,
  },
  {
    what: 'TOTP seeds',
    table: 'totp_enrollments',
    key: 'id',
    keyIs: 'id',
    keys: 'TOTP_KEYS',
    column: 'seed',
    context: seedContext,
  },
];

export type ResealDeps = {
  reseals: ResealStore;
  sealer: Sealer;
  totpSealer: Sealer | undefined;
  config: { sealingKeys: readonly NamedKey[]; totpKeys: readonly NamedKey[] };
  clock: Clock;
  log: Log;
};

export type ResealStep = {
  /** Texts that were sealed anew in this step. */
  resealed: number;
  /** Texts that no configured key opens; they stay as they are. */
  failed: number;
  /** Where the next step goes on; null: every place was looked at. */
  next: string | null;
  /** Once every place was looked at: what older keys still seal, by place. */
  left: { what: string; keys: Place['keys']; count: number }[];
};

const pageSize = 200;
/** How long a step may take, about: a call stays short whatever there is to do. */
const stepMs = 3 * second;

const partsOf = ({ totpSealer, sealer, config }: ResealDeps, { keys }: Place) => {
  const [named] = keys === 'TOTP_KEYS' ? config.totpKeys : config.sealingKeys;
  const used = keys === 'TOTP_KEYS' ? totpSealer : sealer;
  return used && named ? { sealer: used, prefix: `v1.${named.id}.` } : undefined;
};

/** Where a step begins: the number of its place, and the key behind which it goes on. @throws VALIDATION_ERROR */
const readCursor = (after: string | undefined): { at: number; key: string | undefined } => {
  if (after === undefined) return { at: 0, key: undefined };
  const [, at = '', key = ''] = /^(\d{1,2}):([\w-]{0,40})$/.exec(after) ?? [];
  if (at === '' || Number(at) >= sealedPlaces.length) {
    throw invalid({ field: 'after', issue: 'must be the next of a step' });
  }
  return { at: Number(at), key: key || undefined };
};

/** Seals one page of a place anew. */
const resealPage = async (
  deps: ResealDeps,
  place: Place,
  given: { sealer: Sealer; prefix: string; after: string | undefined },
) => {
  const { sealer, prefix, after } = given;
  const page = await deps.reseals.page(place, { prefix, after, limit: pageSize });
  let [resealed, failed] = [0, 0];
  for (const { key, sealed: before } of page) {
    try {
      const context = place.context(key);
      const sealed = sealer.seal(sealer.open(before, context), context);
      // Another text there by now was sealed by its own writer, with the newest key.
      if (await deps.reseals.replace(place, { key, before, sealed })) resealed++;
    } catch (error) {
      failed++;
      const fields = { what: place.what, record: key, reason: describeError(error) };
      deps.log.warn(fields, 'secret not resealed');
    }
  }
  return { resealed, failed, last: page.length < pageSize ? undefined : page.at(-1)?.key };
};

/** What older keys still seal. */
const leftOf = async (deps: ResealDeps): Promise<ResealStep['left']> => {
  const counted: ResealStep['left'] = [];
  for (const place of sealedPlaces) {
    const parts = partsOf(deps, place);
    // Without any key nothing is current: what is there is counted.
    const count = await deps.reseals.count(place, parts?.prefix ?? 'v1..');
    if (count > 0) counted.push({ what: place.what, keys: place.keys, count });
  }
  const [newest] = deps.config.sealingKeys;
  const pending = newest ? await deps.reseals.countFormer(`v1.${newest.id}.`) : 0;
  const what = 'events on their way to former webhook addresses';
  if (pending > 0) counted.push({ what, keys: 'SEALING_KEYS' as const, count: pending });
  return counted;
};

/**
 * Seals anew what older keys sealed, from `after` on, for about three seconds. What was done stays done: it may be
 * stopped between steps, repeated, and run beside processes that serve, once all of these know the newest key.
 * @throws VALIDATION_ERROR (`after`)
 */
export const resealStep = async (
  deps: ResealDeps,
  after: string | undefined,
): Promise<ResealStep> => {
  const until = deps.clock.now() + stepMs;
  let { at, key } = readCursor(after);
  let [resealed, failed] = [0, 0];
  for (let place = sealedPlaces[at]; place; place = sealedPlaces[at]) {
    const parts = partsOf(deps, place);
    const page = parts && (await resealPage(deps, place, { ...parts, after: key }));
    resealed += page?.resealed ?? 0;
    failed += page?.failed ?? 0;
    key = page?.last;
    if (key === undefined) at++;
    if (deps.clock.now() >= until && sealedPlaces[at]) {
      return { resealed, failed, next: `${at}:${key ?? ''}`, left: [] };
    }
  }
  return { resealed, failed, next: null, left: await leftOf(deps) };
};
