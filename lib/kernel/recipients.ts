// The keys a recipient is known by: HMACs, so that no key in Redis or queue shows a phone number.
import { reachedAs } from './phone.ts';
import { hmacHex, type NamedKey } from './secrets.ts';

const keyLength = 32;

const variantLength = 8;

export type RecipientKeys = {
  /** 32 hex digits for a phone, the same for all accounts and for both forms of one WhatsApp recipient. */
  ofPhone(phone: string): string;
  /**
   * 32 hex digits for one account's (and mode's) recipient. The form that is not the canonical one of a WhatsApp
   * recipient with two adds a colon and 8 digits: its codes are its own, its limits are not (`personOf`).
   */
  ofRecipient(accountId: string, mode: string, phone: string): string;
  /** 32 hex digits for the e-mail address of somebody who logs in, or for the source (api/source.ts) of the call. */
  ofLogin(what: 'email' | 'source', text: string): string;
  /** 32 hex digits for one account's block of numbers (an E.164 number without its last four digits). */
  ofPrefix(accountId: string, prefix: string): string;
};

/** The part of a recipient's key that both forms of one WhatsApp recipient share: limits and hash tags use it. */
export const personOf = (recipient: string): string => recipient.slice(0, keyLength);

/** Keys under the phone pepper. */
export const createRecipientKeys = (pepper: NamedKey): RecipientKeys => {
  const ofText = (text: string): string => hmacHex(pepper.key, text).slice(0, keyLength);
  return {
    ofPhone: (phone) => ofText(reachedAs(phone)),
    ofRecipient: (accountId, mode, phone) => {
      const canonical = reachedAs(phone);
      const person = ofText(`${accountId}\n${mode}\n${canonical}`);
      if (canonical === phone) return person;
      return `${person}:${ofText(`${accountId}\n${mode}\n${phone}`).slice(0, variantLength)}`;
    },
    ofLogin: (what, text) => hmacHex(pepper.key, `login\n${what}\n${text}`).slice(0, keyLength),
    ofPrefix: (accountId, prefix) => ofText(`${accountId}\nprefix\n${prefix}`),
  };
};
