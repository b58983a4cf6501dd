// Where one message stands.
import { fail } from '../kernel/errors.ts';
import { fromMessageId, idTime, toMessageId } from '../kernel/ids.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import type { Principal } from '../keys/rules.ts';
import { joinFacts, statusOf } from '../messages/rules.ts';
import type { MessageStore, StoredMessage } from '../messages/store.ts';
import type { LiveStore } from './store.ts';

export type StatusDeps = { messages: MessageStore; live: LiveStore; recipients: RecipientKeys };

const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

/** What Redis has learnt and MySQL not yet: a verification is true the moment it is answered. */
const newest = async (deps: StatusDeps, { message, facts }: StoredMessage) => {
  const { accountId, mode, phone, id } = message;
  const recipient = deps.recipients.ofRecipient(accountId, mode, phone);
  const live = await deps.live.find({ recipient, id }).catch(() => undefined);
  return live ? joinFacts(facts, { ...live.facts, failedAt: null, failureReason: null }) : facts;
};

/**
 * GET /v1/otp/status/{message_id}.
 * @throws NOT_FOUND, also for another account's or mode's message
 */
export const otpStatus = async (deps: StatusDeps, principal: Principal, messageId: string) => {
  const id = fromMessageId(messageId);
  const stored = id && (await deps.messages.find(principal.accountId, id));
  if (!id || !stored || stored.message.mode !== principal.mode) throw fail('NOT_FOUND');
  // A code that was out may be verified, even that of a message which is taken to have failed.
  const { status: known, facts: kept } = stored;
  const open = known === 'sent' || (known === 'failed' && kept.expiresAt !== null);
  const facts = open ? await newest(deps, stored) : kept;
  const status = statusOf(facts);
  return {
    message_id: toMessageId(id),
    status,
    channel: facts.channel,
    mode: stored.message.mode,
    created_at: new Date(idTime(id)).toISOString(),
    expires_at: isoOrNull(facts.expiresAt),
    delivered_at: isoOrNull(facts.deliveredAt),
    verified_at: isoOrNull(facts.verifiedAt),
    failure_reason: status === 'failed' ? facts.failureReason : null,
    fallback_used: facts.channel === 'telegram',
  };
};
