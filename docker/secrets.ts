// Loaded before a process of the Docker installation: gives it the secrets nobody set, made once and kept in a volume.
//   node --import ./docker/secrets.ts api/main.ts
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.TESSERA_SECRETS || '/secrets/secrets.json';

// The form of lib/kernel/config.ts: id:base64 of 32 bytes.
const namedKey = (): string => `k1:${randomBytes(32).toString('base64')}`;

const makeSecrets = (): Record<string, string> => ({
  CODE_PEPPERS: namedKey(),
  PHONE_PEPPER: namedKey(),
  SEALING_KEYS: namedKey(),
  TOTP_KEYS: namedKey(),
  OPS_TOKEN: randomBytes(24).toString('hex'),
});

const isThere = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EEXIST';

// The migration runs alone before everything else, so only it ever gets to write the file.
const readSecrets = (): Record<string, string> => {
  try {
    writeFileSync(file, JSON.stringify(makeSecrets()), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!isThere(error)) throw error;
  }
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
};

for (const [name, value] of Object.entries(readSecrets())) process.env[name] ||= value;

// For Prometheus, which is another user in another container and shares nothing but this file.
const { TESSERA_OPS_TOKEN_FILE: tokenFile, OPS_TOKEN: token } = process.env;
if (tokenFile && token) writeFileSync(tokenFile, token, { mode: 0o644 });
