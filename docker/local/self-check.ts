// The self-check of a fresh stack: one code travels through the public API to a simulated phone and back.
import { setTimeout as sleep } from 'node:timers/promises';

type Answer = { status: number; body: unknown };

/** Thrown when the code does not make it; the message says how far it came. */
export class SelfCheckError extends Error {}

const arriveWithinMs = 10_000;
const requestMs = 30_000;

// Numbers of this form are reserved for fiction, yet valid; a fresh one meets no limit of an earlier start.
const areas = [202, 206, 212, 213, 305, 310, 312, 404, 415, 503, 512, 602, 617, 702, 713, 917];

const fictitiousPhone = (): string => {
  const area = areas[Math.floor(Math.random() * areas.length)] ?? 415;
  const line = String(Math.floor(Math.random() * 100)).padStart(2, '0');
  return `+1${area}55501${line}`;
};

const call = async (url: string, init: RequestInit): Promise<Answer> => {
  const limits = [AbortSignal.timeout(requestMs), ...(init.signal ? [init.signal] : [])];
  const answer = await fetch(url, { ...init, signal: AbortSignal.any(limits) });
  const text = await answer.text();
  try {
    return { status: answer.status, body: JSON.parse(text) };
  } catch {
    return { status: answer.status, body: text.slice(0, 200) };
  }
};

const describe = ({ status, body }: Answer): string => `${status} ${JSON.stringify(body)}`;

const newestCode = (body: unknown): string | undefined => {
  const { messages = [] } = body as { messages?: { code?: string }[] };
  return messages[0]?.code;
};

const readPhone = async (sim: string, phone: string, signal: AbortSignal): Promise<string> => {
  const deadline = Date.now() + arriveWithinMs;
  while (Date.now() < deadline) {
    const answer = await call(`${sim}/phones/${encodeURIComponent(phone)}/messages`, { signal });
    const code = answer.status === 200 ? newestCode(answer.body) : undefined;
    if (code !== undefined) return code;
    await sleep(100);
  }
  throw new SelfCheckError('The code was sent but did not arrive on the simulated phone.');
};

/**
 * Sends a code to a simulated phone and verifies it.
 * @returns how long it took, in ms
 * @throws SelfCheckError
 */
export const runSelfCheck = async (at: {
  api: string;
  sim: string;
  key: string;
  signal: AbortSignal;
}): Promise<number> => {
  const startedAt = Date.now();
  const phone = fictitiousPhone();
  const post = (path: string, body: unknown) =>
    call(`${at.api}${path}`, {
      method: 'POST',
      signal: at.signal,
      headers: { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const sent = await post('/v1/otp/send', { phone });
  if (sent.status !== 200) {
    throw new SelfCheckError(`Self-check: sending a code was answered ${describe(sent)}`);
  }
  const code = await readPhone(at.sim, phone, at.signal);
  const verified = await post('/v1/otp/verify', { phone, code });
  if (verified.status !== 200) {
    throw new SelfCheckError(`Self-check: verifying the code was answered ${describe(verified)}`);
  }
  return Date.now() - startedAt;
};
