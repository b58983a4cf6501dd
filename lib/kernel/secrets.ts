// Secrets: HMACs under named peppers, sealing with AES-256-GCM, and constant-time comparison.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** A key of 32 bytes under a short name; the first of a list is used for new things, all for old ones. */
export type NamedKey = { id: string; key: Buffer };

export const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

// A KeyObject is made once per key: making it per call costs more than the HMAC.
const keyObjects = new WeakMap<Buffer, KeyObject>();

const keyObjectOf = (key: Buffer): KeyObject => {
  const known = keyObjects.get(key) ?? createSecretKey(key);
  keyObjects.set(key, known);
  return known;
};

export const hmacHex = (key: Buffer, text: string): string =>
  createHmac('sha256', keyObjectOf(key)).update(text).digest('hex');

/** Whether two texts are equal, in time that does not depend on where they differ. */
export const equalInConstantTime = (left: string, right: string): boolean =>
  timingSafeEqual(
    createHash('sha256').update(left).digest(),
    createHash('sha256').update(right).digest(),
  );

/** `bytes` of randomness as base64url text. */
export const randomToken = (bytes: number): string => randomBytes(bytes).toString('base64url');

/** What a sealed text belongs to: the purpose and record it was sealed for, and only they open it. */
export type SealContext = { purpose: string; record: string };

export type Sealer = {
  /** Seals `text`; the result is printable. */
  seal(text: string, context: SealContext): string;
  /** Opens what `seal` made. Throws when the key is unknown, or text or context were changed. */
  open(sealed: string, context: SealContext): string;
  /** Whether the newest key sealed it. */
  isCurrent(sealed: string): boolean;
};

const nonceBytes = 12;
const tagBytes = 16;
const version = 'v1';

// A key per record, so that the bound on random nonces under one key never matters (NIST SP 800-38D section 8.3).
// HKDF-Expand of RFC 5869 for one block of 32 bytes; the master keys are uniformly random, so Extract is not needed
// (section 3.3 there).
const recordKey = (master: Buffer, context: SealContext): KeyObject => {
  const hmac = createHmac('sha256', keyObjectOf(master));
  // As a KeyObject: handing the bytes to a cipher costs several times the encryption.
  return createSecretKey(hmac.update(`${context.purpose}\n${context.record}\x01`).digest());
};

const aad = (context: SealContext): Buffer => Buffer.from(`${context.purpose}\n${context.record}`);

/** AES-256-GCM with a key per record; format `v1.<key id>.<nonce, ciphertext and tag>`. */
export const createSealer = (keys: readonly NamedKey[]): Sealer => {
  const [current] = keys;
  if (!current) throw new Error('a sealer needs at least one key');

  const seal = (text: string, context: SealContext): string => {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', recordKey(current.key, context), nonce);
    cipher.setAAD(aad(context));
    const body = Buffer.concat([
      nonce,
      cipher.update(text, 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return `${version}.${current.id}.${body.toString('base64url')}`;
  };

  const open = (sealed: string, context: SealContext): string => {
    const [format, id, text = ''] = sealed.split('.');
    const master = keys.find((candidate) => candidate.id === id);
    if (format !== version || !master) throw new Error('sealed with an unknown key or format');
    const body = Buffer.from(text, 'base64url');
    const decipher = createDecipheriv(
      'aes-256-gcm',
      recordKey(master.key, context),
      body.subarray(0, nonceBytes),
      // Otherwise a shorter tag, cheaper to guess, would do (NIST SP 800-38D appendix C).
      { authTagLength: tagBytes },
    );
    decipher.setAAD(aad(context));
    decipher.setAuthTag(body.subarray(body.length - tagBytes));
    const plain = decipher.update(body.subarray(nonceBytes, body.length - tagBytes));
    return Buffer.concat([plain, decipher.final()]).toString('utf8');
  };

  const isCurrent = (sealed: string): boolean => sealed.startsWith(`${version}.${current.id}.`);

  return { seal, open, isCurrent };
};
