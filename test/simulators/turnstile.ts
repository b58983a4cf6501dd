// Turnstile siteverify of the simulators: the three test secrets, tokens used once (reference 02 section 11).
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';
import { Refusal, readBody, readParameters, sendJson } from './http.ts';
import type { Stats } from './stats.ts';

const passes = '1x0000000000000000000000000000000AA';
const fails = '2x0000000000000000000000000000000AA';
const spent = '3x0000000000000000000000000000000AA';
/** The token Cloudflare's test site keys produce; it is good any number of times. */
export const dummyToken = 'XXXX.DUMMY.TOKEN.XXXX';

const lifeMs = 300_000;
const maxTokens = 10_000;
const maxTokenLength = 2048;

type Token = { issuedAtMs: number; used: boolean; usedBy: string | undefined };
type Verdict = { errors: string[]; issuedAtMs: number };

export type Turnstile = ReturnType<typeof createTurnstile>;

/** Creates siteverify. Tokens of `issue` live 300 s and work once, again only with the same idempotency_key. */
export const createTurnstile = ({ clock, stats }: { clock: Clock; stats: Stats }) => {
  const tokens = new Map<string, Token>();
  let serial = 0;

  const spend = (token: Token, key: string | undefined): string[] => {
    if (clock.now() - token.issuedAtMs > lifeMs) return ['timeout-or-duplicate'];
    if (token.used) {
      return key !== undefined && key === token.usedBy ? [] : ['timeout-or-duplicate'];
    }
    token.used = true;
    token.usedBy = key;
    return [];
  };

  const judge = (secret: unknown, response: unknown, key: string | undefined): Verdict => {
    const verdict = (...errors: string[]) => ({ errors, issuedAtMs: clock.now() });
    if (!secret) return verdict('missing-input-secret');
    if (secret !== passes && secret !== fails && secret !== spent) {
      return verdict('invalid-input-secret');
    }
    if (!response) return verdict('missing-input-response');
    if (typeof response !== 'string' || response.length > maxTokenLength || secret === fails) {
      return verdict('invalid-input-response');
    }
    if (secret === spent) return verdict('timeout-or-duplicate');
    if (response === dummyToken) return verdict();
    const token = tokens.get(response);
    if (!token) return verdict('invalid-input-response');
    return { errors: spend(token, key), issuedAtMs: token.issuedAtMs };
  };

  return {
    /** A token that works once, as a widget would produce it. */
    issue: (): string => {
      serial += 1;
      const token = `0.sim-${serial}-${clock.now()}`;
      const [oldest] = tokens.size >= maxTokens ? tokens.keys() : [];
      if (oldest !== undefined) tokens.delete(oldest);
      tokens.set(token, { issuedAtMs: clock.now(), used: false, usedBy: undefined });
      return token;
    },
    /** Answers POST siteverify. */
    handle: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      try {
        const body = await readBody(request);
        const input = readParameters(request, body, new URLSearchParams());
        const key = input.idempotency_key === undefined ? undefined : String(input.idempotency_key);
        const { errors, issuedAtMs } = judge(input.secret, input.response, key);
        stats.note('turnstile', errors[0] ?? 'success');
        sendJson(response, 200, {
          success: errors.length === 0,
          'error-codes': errors,
          ...(errors.length === 0
            ? {
                challenge_ts: new Date(issuedAtMs).toISOString(),
                hostname: 'localhost',
                action: '',
                cdata: '',
              }
            : {}),
        });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        stats.note('turnstile', 'bad-request');
        sendJson(response, 200, { success: false, 'error-codes': ['bad-request'] });
      }
    },
    reset: (): void => tokens.clear(),
  };
};
