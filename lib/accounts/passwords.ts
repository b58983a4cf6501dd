// Passwords: argon2id with the parameters OWASP gives as its minimum.
import { hash, verify } from '@node-rs/argon2';

// OWASP Password Storage Cheat Sheet: 19 MiB, two passes, one lane.
const parameters = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 };

export const hashPassword = (password: string): Promise<string> => hash(password, parameters);

export const isPassword = (hashed: string, password: string): Promise<boolean> =>
  verify(hashed, password);
