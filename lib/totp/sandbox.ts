// The sandbox of TOTP: real codes of a public secret, and numbers that meet each error.
import { fail } from '../kernel/errors.ts';
import { magicExtras, totpMagic } from '../otp/sandbox.ts';
import type { Subject } from './rules.ts';

/** @throws the error that a magic number stands for, with a test key */
export const refuseMagic = (
  { mode, phone }: Subject,
  operation: 'enroll' | 'verify' | 'disable',
  now: number,
): void => {
  const code = mode === 'test' ? totpMagic(phone, operation) : undefined;
  if (code) throw fail(code, magicExtras(code, now));
};
