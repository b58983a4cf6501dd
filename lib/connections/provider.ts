// Asking the provider on behalf of a customer: what every verb here needs, and failures in the customer's words.
import { GraphFailure, type WhatsappManagement } from '../channels/whatsapp-management.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Sealer } from '../kernel/secrets.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import type { NewsStore } from '../messages/news-store.ts';
import { issueOf, type WantedTemplate } from './rules.ts';
import type { ConnectionStore } from './store.ts';

/** `template` is that of the settings: its language is for accounts that did not choose one. */
export type ConnectionDeps = {
  connections: ConnectionStore;
  management: WhatsappManagement;
  sealer: Sealer;
  revocations: Pick<Revocations, 'announce'>;
  news: NewsStore;
  announcer: Pick<Announcer, 'announce'>;
  clock: Clock;
  log: Log;
  template: WantedTemplate & { ttlSeconds: number };
};

const retrySeconds = 30;

const unavailable = (cause: unknown) =>
  fail(
    'SERVICE_UNAVAILABLE',
    { retry_after_seconds: retrySeconds },
    { cause, message: 'WhatsApp cannot be asked at the moment. Nothing was changed.' },
  );

/**
 * Runs calls to the provider. `tokenField` is the field of the request that the token came with.
 * @throws VALIDATION_ERROR naming the field the provider does not accept, SERVICE_UNAVAILABLE
 */
export const asking = async <T>(
  deps: Pick<ConnectionDeps, 'log'>,
  tokenField: string,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GraphFailure)) throw error;
    const issue = issueOf(error.refusal, tokenField);
    const { step, code, subcode } = error.refusal;
    const fields = { step, provider_code: code, provider_subcode: subcode ?? null };
    if (issue) {
      deps.log.info(fields, 'whatsapp management refused');
      throw invalid(issue);
    }
    deps.log.warn({ ...fields, reason: describeError(error) }, 'whatsapp management failed');
    throw unavailable(error);
  }
};

/** What a connection's token is sealed for. */
export const tokenContext = (connectionId: string) => ({
  purpose: 'whatsapp-token',
  record: connectionId,
});

/** What a number's registration PIN is sealed for. */
export const pinContext = (phoneNumberId: string) => ({
  purpose: 'whatsapp-pin',
  record: phoneNumberId,
});
