// The process that hashes passwords: Argon2id, one task at a time, and nothing else; hasher.ts starts it.
import { hashRawSync, hashSync, verifySync } from '@node-rs/argon2';
import { hashParameters } from './rules.ts';

/** A task by its name, with what it is given and what it answers. */
export type Hashing = {
  /** The stored form of a password. */
  hash: [password: string, stored: string];
  /** Whether the password is the one the hash was made from. */
  verify: [given: { against: string; password: string }, right: boolean];
  /** 32 bytes of each text under one salt, in order: a whole set of codes is one task. */
  derive: [given: { texts: readonly string[]; salt: Uint8Array }, bytes: Uint8Array[]];
};

export type HashingTask = {
  [Name in keyof Hashing]: { name: Name; given: Hashing[Name][0] };
}[keyof Hashing];

export type HashingAnswer = { result: unknown } | { failed: string };

const work = (task: HashingTask): unknown => {
  if (task.name === 'hash') return hashSync(task.given, hashParameters);
  if (task.name === 'verify') return verifySync(task.given.against, task.given.password);
  const { texts, salt } = task.given;
  const parameters = { ...hashParameters, outputLen: 32, salt: Buffer.from(salt) };
  return texts.map((text) => hashRawSync(text, parameters));
};

const answer = (task: HashingTask): HashingAnswer => {
  try {
    return { result: work(task) };
  } catch (error) {
    return { failed: String(error) };
  }
};

process.on('message', (task: HashingTask) => process.send?.(answer(task)));
// Whoever started it is gone.
process.on('disconnect', () => process.exit(0));
// The terminal's Ctrl-C is for whoever started it.
process.on('SIGINT', () => undefined);
