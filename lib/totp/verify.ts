// Verifying a TOTP code: a step counts once, a wrong code is counted, and everything is logged.
import type { Quotes } from '../billing/quote.ts';
import type { EventWire } from '../jobs.ts';
import { matchStep } from '../kernel/authenticator.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { within } from '../kernel/in-time.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { describeError } from '../kernel/redact.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { tellNews } from '../messages/news.ts';
import type { Plan } from '../messages/rules.ts';
import type { AttemptStore, LogEntry } from './attempt-store.ts';
import {
  type EnrollDeps,
  requireSealer,
  seedContext,
  type TotpCommand,
  totpEvent,
} from './enroll.ts';
import type { Guesses } from './guesses.ts';
import { blockMs, type Enrollment, failedAttempts, isActive } from './rules.ts';

export type VerifyDeps = EnrollDeps & {
  attempts: AttemptStore;
  guesses: Guesses;
  recipients: RecipientKeys;
  quotes: Pick<Quotes, 'totp' | 'cancel'>;
  broker: { ready(): boolean };
};

export type Verified = { verified: boolean; attemptsRemaining: number; firstConfirm: boolean };

const retrySeconds = 5;
/** How long the answer waits for MySQL to keep what the broker did not take. */
const keepPatienceMs = 1_000;

const blocked = (waitMs: number, now: number) => {
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return fail('TOO_MANY_ATTEMPTS', {
    ...{ reason: 'failed_verifications', layer: 'origin', dimension: 'recipient' },
    retry_after_seconds: seconds,
    reset_at: new Date(now + seconds * 1000).toISOString(),
    window_seconds: blockMs / 1000,
    limit: failedAttempts,
  });
};

const openSeed = (sealer: Sealer, { id, seed }: Enrollment): string =>
  sealer.open(seed ?? '', seedContext(id));

// The verification stands, whoever hears of it: what the broker does not take is told from MySQL, and what was not
// charged by its event is charged from the log.
const tell = async ({ announcer, news, log }: VerifyDeps, event: EventWire): Promise<void> => {
  try {
    // Somebody waits for the answer behind it.
    await announcer.announce(event, { urgent: true });
  } catch (error) {
    const fields = { type: event.type, account_id: event.account_id, reason: describeError(error) };
    log.warn(fields, 'verified, told later');
    await within(keepPatienceMs, news.keep(event)).catch(() => undefined);
  }
};

/** Answers false when another call has confirmed it. */
const confirm = async (
  deps: VerifyDeps,
  about: Parameters<typeof totpEvent>[1],
): Promise<boolean> => {
  const told = totpEvent('totp.enrolled', about);
  const { subject, id, at } = about;
  const confirmed = await deps.totp.confirm(subject, id, { at, told });
  if (confirmed) await tellNews(deps, [told]);
  return confirmed;
};

/** What follows from a step that counted: the enrollment is confirmed, sealed anew if it must be, and told of. */
const accept = async (
  deps: VerifyDeps,
  { subject, requestId }: TotpCommand,
  { enrollment, entry, secret, at, plan }: Accepted,
): Promise<{ confirmed: boolean }> => {
  const { id, seed, state } = enrollment;
  const sealer = requireSealer(deps);
  if (seed !== null && !sealer.isCurrent(seed)) {
    await deps.totp.reseal(id, seed, sealer.seal(secret, seedContext(id)));
  }
  // Another call may have confirmed it meanwhile, by another step.
  const about = { subject, requestId, at, id };
  const confirmed = state === 'unconfirmed' && (await confirm(deps, about));
  const { step, priceMicros, id: attemptId } = entry;
  const counted = { step: step ?? 0, priceMicros, plan, attemptId };
  const verified = totpEvent('totp.verified', { ...about, ...counted });
  await tell(deps, verified);
  return { confirmed };
};

type Accepted = {
  enrollment: Enrollment;
  entry: LogEntry;
  secret: string;
  at: number;
  plan: Plan;
};

const findActive = async (deps: VerifyDeps, command: TotpCommand, now: number) => {
  const enrollment = await deps.totp.find(command.subject);
  if (!enrollment || !isActive(enrollment, now)) throw fail('TOTP_NOT_ENROLLED');
  return enrollment;
};

/**
 * POST /v1/totp/verify. A wrong code is no error but `verified: false`, and so is a code whose step was used, which
 * does not count as a guess.
 * @throws TOTP_NOT_ENROLLED, TOO_MANY_ATTEMPTS, TOTP_NOT_CONFIGURED, SERVICE_UNAVAILABLE, the errors of credit
 */
export const verifyTotp = async (
  deps: VerifyDeps,
  command: TotpCommand & { code: string },
): Promise<Verified> => {
  const sealer = requireSealer(deps);
  // A step is used up by being right, so nothing is checked that could not be announced.
  if (!deps.broker.ready()) {
    throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds });
  }
  const now = deps.clock.now();
  const enrollment = await findActive(deps, command, now);
  const { account, subject } = command;
  const { accountId, mode, phone } = subject;
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  const secret = openSeed(sealer, enrollment);
  const step = matchStep({ secret, code: command.code, nowMs: now });
  const judgement = await deps.guesses.judge(recipient, step !== undefined, now);
  const id = newId();
  // Asked for a wrong code, too: an account without credit does not learn which one is right.
  const holdId = step === undefined || judgement.kind === 'blocked' ? undefined : id;
  const quote = await deps.quotes.totp({ account, mode, holdId });
  const attempt = {
    ...{ id, subject: command.subject, requestId: command.requestId },
    ...{ enrollmentId: enrollment.id, priceMicros: quote.priceMicros },
  };
  if (judgement.kind === 'blocked') {
    await deps.attempts.record({ ...attempt, step: null, reason: 'blocked' });
    throw blocked(judgement.waitMs, now);
  }
  if (step === undefined) {
    await deps.attempts.record({ ...attempt, step: null, reason: 'wrong_code' });
    return refused(judgement.remaining);
  }
  // The step is used up before anything is answered: of many who bring the same code, one is first.
  const entry = await deps.attempts.record({ ...attempt, step });
  if (entry.status === 'failed') {
    await deps.quotes.cancel({ account, mode, holdId: id });
    return refused(judgement.remaining);
  }
  if (judgement.remaining < failedAttempts) await deps.guesses.clear(recipient);
  const about = { enrollment, entry, secret, at: now, plan: quote.plan };
  const { confirmed } = await accept(deps, command, about);
  return { verified: true, attemptsRemaining: failedAttempts, firstConfirm: confirmed };
};

const refused = (attemptsRemaining: number): Verified => ({
  ...{ verified: false, attemptsRemaining, firstConfirm: false },
});
