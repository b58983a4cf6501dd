// The secret that signs an account's webhooks (Standard Webhooks): its form, and how it is sealed.
import { randomBytes } from 'node:crypto';
import { hour } from '../kernel/clock.ts';
import type { SealContext } from '../kernel/secrets.ts';

/** How long the secret before a rotation goes on signing beside the new one (design section 4). */
export const secretOverlapMs = 24 * hour;

/** 24 random bytes, as the Standard Webhooks specification advises. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(24).toString('base64')}`;

export const webhookSecretContext = (accountId: string): SealContext => ({
  purpose: 'webhook-secret',
  record: accountId,
});
