// The thread that hashes passwords: Argon2id, one at a time, at a lower priority than what sends codes.
import { hashSync, verifySync } from '@node-rs/argon2';
import { hashParameters } from './rules.ts';

/** The stored form of a password. */
export const hash = (password: string): string => hashSync(password, hashParameters);

/** Whether the password is the one the hash was made from. */
export const verify = (task: { against: string; password: string }): boolean =>
  verifySync(task.against, task.password);
