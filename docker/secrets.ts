// Makes the secrets of a Docker installation once: node docker/secrets.ts <file>. Settings given by hand win over them.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';

const named = (): string => `k1:${randomBytes(32).toString('base64')}`;

const secrets: Record<string, string> = {
  CODE_PEPPERS: named(),
  PHONE_PEPPER: named(),
  SEALING_KEYS: named(),
  OPS_TOKEN: randomBytes(24).toString('hex'),
};

const file = process.argv[2] ?? '/secrets/env';
const lines = Object.entries(secrets).map(([name, value]) => `${name}="${value}"\n`);
try {
  writeFileSync(file, lines.join(''), { flag: 'wx', mode: 0o600 });
  process.stdout.write('Secrets made.\n');
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  process.stdout.write('The secrets of an earlier start are kept.\n');
}
