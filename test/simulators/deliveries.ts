// Webhooks from a provider to the API: repeated with growing pauses until they are taken.
import { Agent, request } from 'node:http';

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const firstPauseMs = 100;
const maxPauseMs = 5_000;
const maxTries = 60;

const post = (url: URL, headers: Record<string, string>, body: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    const call = request(
      url,
      {
        agent,
        method: 'POST',
        timeout: 10_000,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
      },
      (answer) => {
        answer.resume();
        answer.on('end', () => resolve(answer.statusCode ?? 0));
        answer.on('error', reject);
      },
    );
    call.on('timeout', () => call.destroy(new Error('timeout')));
    call.on('error', reject);
    call.end(body);
  });

export type Deliveries = {
  /** Resolves when the receiver has taken it, or when it was given up. */
  send(path: string, headers: Record<string, string>, body: Buffer): Promise<boolean>;
  pending(): number;
  close(): void;
};

/** Sends to whatever `apiUrl` says at the time. */
export const createDeliveries = (apiUrl: () => string): Deliveries => {
  const timers = new Set<NodeJS.Timeout>();
  let pending = 0;
  let closed = false;

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        resolve();
      }, ms);
      timers.add(timer);
    });

  const attempt = async (path: string, headers: Record<string, string>, body: Buffer) => {
    for (let tries = 0; tries < maxTries && !closed; tries++) {
      const status = await post(new URL(path, apiUrl()), headers, body).catch(() => 0);
      if (status >= 200 && status < 300) return true;
      await pause(Math.min(firstPauseMs * 2 ** tries, maxPauseMs));
    }
    return false;
  };

  return {
    send: async (path, headers, body) => {
      pending++;
      try {
        return await attempt(path, headers, body);
      } finally {
        pending--;
      }
    },
    pending: () => pending,
    close: () => {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
};
