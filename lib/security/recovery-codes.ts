// Recovery codes: ten of 80 bits, written in Crockford's base 32, kept as Argon2id under one salt per set.
import { randomBytes } from 'node:crypto';
import type { Passwords } from '../accounts/passwords.ts';

/** How many a set has (reference 06 section 5). */
export const recoveryCodesPerSet = 10;
/** Below this many unused ones it is time for new ones; the account's webhook is told. */
export const recoveryCodesLow = 3;
const bytesPerCode = 10;
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const saltBytes = 16;

const encode = (bytes: Buffer): string => {
  let bits = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let digit = 0; digit < (bytes.length * 8) / 5; digit++) {
    text = alphabet.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return text;
};

/** Fresh codes, as people write them down: four groups of four. */
const newRecoveryCodes = (): string[] =>
  Array.from({ length: recoveryCodesPerSet }, () =>
    encode(randomBytes(bytesPerCode)).replace(/.{4}(?=.)/g, '$&-'),
  );

/** The code in what somebody typed, or undefined: case, spaces and dashes do not count, O is 0 and I and L are 1. */
export const readRecoveryCode = (typed: string): string | undefined => {
  const plain = typed.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  return /^[0-9A-HJKMNP-TV-Z]{16}$/.test(plain) ? plain : undefined;
};

/**
 * What is kept of codes: below 112 bits a plain hash would not do (OWASP ASVS 6.5.2).
 * @throws SERVICE_UNAVAILABLE
 */
export const hashRecoveryCodes = (
  passwords: Pick<Passwords, 'derive'>,
  codes: readonly string[],
  salt: Buffer,
): Promise<Buffer[]> =>
  passwords.derive(
    codes.map((code) => readRecoveryCode(code) ?? ''),
    salt,
  );

/** A fresh set: the codes to show once, and what is kept of them. @throws SERVICE_UNAVAILABLE */
export const newRecoverySet = async (passwords: Pick<Passwords, 'derive'>) => {
  const codes = newRecoveryCodes();
  const salt = randomBytes(saltBytes);
  return { codes, salt, hashes: await hashRecoveryCodes(passwords, codes, salt) };
};
