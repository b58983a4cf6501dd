// Telegram links: their token, how long they live, and when a shared contact proves a phone.
import { day } from '../kernel/clock.ts';
import { randomToken, sha256Hex } from '../kernel/secrets.ts';
import type { Origin } from '../messages/rules.ts';

/** Spec section 2: a link is valid for 15 minutes. */
export const linkLifeSeconds = 900;

const tokenBytes = 24;

/** A token that Telegram accepts behind /start (1 to 64 of A-Z a-z 0-9 _ -). */
export const newLinkToken = (): string => randomToken(tokenBytes);

/** What is kept of a token, so that neither Redis nor a queue can be used to redeem it. */
export const tokenHash = (token: string): string => sha256Hex(token).slice(0, 40);

export const linkUrl = (botUsername: string, token: string): string =>
  `https://t.me/${botUsername}?start=${token}`;

export type SharedContact = { phone: string; userId: number | null; forwarded: boolean };

/**
 * Whether a contact shows that the sender owns `phone`: the card must be their own (Telegram sets user_id on it),
 * not passed on, and carry that number (reference 02 section 9.4).
 */
export const provesPhone = (contact: SharedContact, senderId: number, phone: string): boolean =>
  contact.userId === senderId && !contact.forwarded && contact.phone === phone;

/**
 * How long a chat need not show a number again for another link. Numbers get new owners: in the United States after 45
 * days at the earliest (47 CFR 52.15(f)(1)(ii)), so a proof ends before that.
 */
export const proofLifeMs = 30 * day;

/** After a send the recipient wants a code; after a deliver only the caller knows it (spec section 3). */
export const wantsFreshCode = (lastAttempt: Origin | undefined): boolean => lastAttempt === 'send';
