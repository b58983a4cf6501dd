// Recovery codes: ten of 120 bits, written in Crockford's base 32, kept as HMACs.
import { createHmac, randomBytes } from 'node:crypto';
import type { Passwords } from '../accounts/passwords.ts';
import type { NamedKey } from '../kernel/secrets.ts';

/** How many a set has. */
export const recoveryCodesPerSet = 10;
/** Below this many unused ones it is time for new ones; the account's webhook is told. */
export const recoveryCodesLow = 3;
/** 120 bits: from 112 on no slow hash is asked for (OWASP ASVS 6.5.2), and six groups of four fit the 32 characters. */
const bytesPerCode = 15;
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const encode = (bytes: Buffer): string => {
  let bits = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let digit = 0; digit < (bytes.length * 8) / 5; digit++) {
    text = alphabet.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return text;
};

/** A fresh code, as people write it down: six groups of four. */
const newRecoveryCode = (): string =>
  encode(randomBytes(bytesPerCode)).replace(/.{4}(?=.)/g, '$&-');

/** The code in what somebody typed, or undefined: case, spaces and dashes do not count, O is 0 and I and L are 1. */
export const readRecoveryCode = (typed: string): string | undefined => {
  const plain = typed.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  // Codes that were made before had 80 bits.
  return /^([0-9A-HJKMNP-TV-Z]{24}|[0-9A-HJKMNP-TV-Z]{16})$/.test(plain) ? plain : undefined;
};

/** What is kept of a code: an HMAC over the account and the code as it is read. */
export type RecoveryCodes = {
  /** What is kept of `code` (as readRecoveryCode answers it) for this account: 32 bytes. */
  hashOf(accountId: string, code: string): Buffer;
  /** A fresh set: the codes to show once, and what is kept of them. */
  newSet(accountId: string): { codes: string[]; hashes: Buffer[] };
};

/**
 * Recovery codes under `key`. A slow hash protects what people choose; these are random bits, and without the key,
 * which is not in the database, not even those can be tried.
 */
export const createRecoveryCodes = (key: NamedKey): RecoveryCodes => {
  const hashOf: RecoveryCodes['hashOf'] = (accountId, code) =>
    createHmac('sha256', key.key).update(`recovery-code\n${accountId}\n${code}`).digest();
  return {
    hashOf,
    newSet: (accountId) => {
      const codes = Array.from({ length: recoveryCodesPerSet }, newRecoveryCode);
      return {
        codes,
        hashes: codes.map((code) => hashOf(accountId, readRecoveryCode(code) ?? '')),
      };
    },
  };
};

/**
 * The hash of a code in a set that was made before codes were kept as HMACs: Argon2id under the salt of the set.
 * @throws SERVICE_UNAVAILABLE
 */
export const saltedHashOf = async (
  passwords: Pick<Passwords, 'derive'>,
  code: string,
  salt: Buffer,
): Promise<Buffer> => {
  const [hash = Buffer.alloc(32)] = await passwords.derive([code], salt);
  return hash;
};
