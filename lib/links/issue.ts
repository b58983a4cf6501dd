// Issuing a Telegram link, and undoing what one led to.
import { fail } from '../kernel/errors.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { linkLifeSeconds, linkUrl, newLinkToken, tokenHash } from './rules.ts';
import type { LinkStore, Recipient } from './store.ts';

/**
 * A fresh link for a recipient (spec section 2: asking again is safe). Seconds until it ends are in `expiresIn`.
 * @throws TELEGRAM_UNAVAILABLE when no bot is configured
 */
export const issueLink = async (
  deps: { links: LinkStore; botUsername: string },
  request: Recipient & { requestId: string },
): Promise<{ url: string; expiresIn: number }> => {
  if (deps.botUsername === '') throw fail('TELEGRAM_UNAVAILABLE', { retry_after_seconds: 300 });
  const token = newLinkToken();
  await deps.links.saveLink(tokenHash(token), request);
  return { url: linkUrl(deps.botUsername, token), expiresIn: linkLifeSeconds };
};

/** Forgets which chat stands for a recipient. Answers whether one did. */
export const unlinkRecipient = (
  deps: { links: LinkStore; recipients: RecipientKeys },
  recipient: Recipient,
): Promise<boolean> => {
  const { accountId, mode, phone } = recipient;
  return deps.links.unlink(recipient, deps.recipients.ofRecipient(accountId, mode, phone));
};
