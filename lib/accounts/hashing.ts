// The thread that hashes passwords: Argon2id, one at a time, at a lower priority than what sends codes.
import { hashRawSync, hashSync, verifySync } from '@node-rs/argon2';
import { hashParameters } from './rules.ts';

/** The stored form of a password. */
export const hash = (password: string): string => hashSync(password, hashParameters);

/** Whether the password is the one the hash was made from. */
export const verify = (task: { against: string; password: string }): boolean =>
  verifySync(task.against, task.password);

/** 32 bytes of each text under one salt, in order: a whole set of codes is one task. */
export const derive = (task: { texts: readonly string[]; salt: Uint8Array }): Uint8Array[] =>
  task.texts.map((text) =>
    hashRawSync(text, { ...hashParameters, outputLen: 32, salt: Buffer.from(task.salt) }),
  );
