// The keys a recipient is known by: HMACs, so that no key in Redis or queue shows a phone number.
import { hmacHex, type NamedKey } from './secrets.ts';

const keyLength = 32;

export type RecipientKeys = {
  /** 32 hex digits for a phone, the same for all accounts. */
  ofPhone(phone: string): string;
  /** 32 hex digits for one account's (and mode's) recipient. */
  ofRecipient(accountId: string, mode: string, phone: string): string;
  /** 32 hex digits for one account's block of numbers (an E.164 number without its last four digits). */
  ofPrefix(accountId: string, prefix: string): string;
};

/** Keys under the phone pepper. */
export const createRecipientKeys = (pepper: NamedKey): RecipientKeys => ({
  ofPhone: (phone) => hmacHex(pepper.key, phone).slice(0, keyLength),
  ofRecipient: (accountId, mode, phone) =>
    hmacHex(pepper.key, `${accountId}\n${mode}\n${phone}`).slice(0, keyLength),
  ofPrefix: (accountId, prefix) =>
    hmacHex(pepper.key, `${accountId}\nprefix\n${prefix}`).slice(0, keyLength),
});
