// Enrolling a phone for TOTP, and ending it (spec sections 3 and 4).
import type { Account } from '../accounts/rules.ts';
import type { EventWire } from '../jobs.ts';
import { newSecret, otpauthUrl, qrDataUri } from '../kernel/authenticator.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { phoneFacts } from '../kernel/phone.ts';
import type { SealContext, Sealer } from '../kernel/secrets.ts';
import type { Announcer } from '../messages/announce.ts';
import { type AccountEventType, accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Plan } from '../messages/rules.ts';
import { demoSecret, judgeEnroll, type Subject } from './rules.ts';
import type { TotpStore } from './store.ts';

export type EnrollDeps = {
  totp: TotpStore;
  /** Undefined when no key for seeds is configured. */
  totpSealer: Sealer | undefined;
  announcer: Announcer;
  news: NewsStore;
  clock: Clock;
  log: Log;
};

export type TotpCommand = { account: Account; subject: Subject; requestId: string };

export const seedContext = (enrollmentId: string): SealContext => ({
  purpose: 'totp',
  record: enrollmentId,
});

const retrySeconds = 60;

/** @throws TOTP_NOT_CONFIGURED */
export const requireSealer = ({ totpSealer }: Pick<EnrollDeps, 'totpSealer'>): Sealer => {
  if (!totpSealer) throw fail('TOTP_NOT_CONFIGURED', { retry_after_seconds: retrySeconds });
  return totpSealer;
};

/** @throws INVALID_PHONE */
const requirePhone = ({ phone }: Subject): void => {
  if (!phoneFacts(phone).possible) throw fail('INVALID_PHONE');
};

export type Enrolled = { secret: string; url: string; qrCode: string; alreadyEnrolled: boolean };

/**
 * POST /v1/totp/enroll: a fresh secret. In the place of a confirmed one only when told so: then the old secret is
 * dead at once, since to replace means that the device is lost or suspect.
 * @throws ALREADY_ENROLLED, INVALID_PHONE, TOTP_NOT_CONFIGURED
 */
export const enrollTotp = async (
  deps: EnrollDeps,
  { account, subject }: TotpCommand,
  replace: boolean,
): Promise<Enrolled> => {
  const sealer = requireSealer(deps);
  requirePhone(subject);
  const secret = subject.mode === 'test' ? demoSecret : newSecret();
  const id = newId();
  const at = deps.clock.now();
  let verdict: ReturnType<typeof judgeEnroll> = 'refuse';
  await deps.totp.change(subject, (present) => {
    verdict = judgeEnroll(present, replace);
    if (verdict === 'refuse') return undefined;
    const seed = sealer.seal(secret, seedContext(id));
    return { id, seed, at, state: 'unconfirmed', createdAt: at };
  });
  if (verdict === 'refuse') throw fail('ALREADY_ENROLLED');
  const issuer = account.company ?? account.name;
  const url = otpauthUrl({ issuer, label: subject.phone, secret });
  return { secret, url, qrCode: await qrDataUri(url), alreadyEnrolled: verdict === 'replace' };
};

/**
 * POST /v1/totp/disable: always comes to the same, however often it is called.
 * @throws nothing of its own
 */
export const disableTotp = async (
  deps: EnrollDeps,
  { subject, requestId }: TotpCommand,
): Promise<void> => {
  const at = deps.clock.now();
  let told: EventWire | undefined;
  await deps.totp.change(subject, (present) => {
    told = undefined;
    if (!present || present.state === 'disabled') return undefined;
    told = totpEvent('totp.disabled', { subject, requestId, at, id: present.id });
    return { ...present, at, told, state: 'disabled', seed: null };
  });
  if (told) await tellNews(deps, [told]);
};

/** An event about an enrollment; a step tells its verifications apart. */
export const totpEvent = (
  type: AccountEventType,
  given: {
    subject: Subject;
    requestId: string;
    at: number;
    id: string;
    step?: number;
    priceMicros?: number;
    plan?: Plan;
    attemptId?: string;
  },
) => {
  const { subject, requestId, at, id, step, priceMicros, plan, attemptId } = given;
  return accountEvent(type, {
    ...{ accountId: subject.accountId, mode: subject.mode, at, requestId },
    subject: step === undefined ? id : `${id} ${step}`,
    data: {
      ...{ phone: subject.phone, enrollment_id: id },
      ...(step === undefined ? {} : { step, price_micros: priceMicros ?? 0, plan: plan ?? null }),
      ...(attemptId === undefined ? {} : { attempt_id: attemptId }),
    },
  });
};
