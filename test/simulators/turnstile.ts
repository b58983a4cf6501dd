// Cloudflare Turnstile's siteverify: the three published test secrets, single use, five minutes (reference 02 section 11).
import type { Answer } from './server.ts';

const secrets: Record<string, string | undefined> = {
  '1x0000000000000000000000000000000AA': undefined,
  '2x0000000000000000000000000000000AA': 'invalid-input-response',
  '3x0000000000000000000000000000000AA': 'timeout-or-duplicate',
};
const dummyToken = 'XXXX.DUMMY.TOKEN.XXXX';

export type TurnstileSim = { verify(fields: URLSearchParams): Answer };

const verdict = (errors: string[]): Answer => ({
  status: 200,
  json: {
    success: errors.length === 0,
    'error-codes': errors,
    challenge_ts: new Date().toISOString(),
    hostname: 'localhost',
  },
});

export const createTurnstileSim = (): TurnstileSim => {
  const used = new Map<string, string>();

  const faultOf = (fields: URLSearchParams): string | undefined => {
    const [secret, token] = [fields.get('secret'), fields.get('response')];
    if (!secret) return 'missing-input-secret';
    if (!(secret in secrets)) return 'invalid-input-secret';
    if (!token) return 'missing-input-response';
    if (secrets[secret]) return secrets[secret];
    if (!token.startsWith(dummyToken)) return 'invalid-input-response';
    const key = fields.get('idempotency_key') ?? '';
    // The bare dummy token always passes; one with a suffix is single-use, as real ones are.
    if (token === dummyToken) return undefined;
    if (used.has(token) && (key === '' || used.get(token) !== key)) return 'timeout-or-duplicate';
    used.set(token, key);
    return undefined;
  };

  return {
    verify: (fields) => {
      const fault = faultOf(fields);
      return verdict(fault ? [fault] : []);
    },
  };
};
