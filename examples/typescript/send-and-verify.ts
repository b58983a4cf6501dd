// Sends a code and verifies it through a typed client: paths, bodies and answers are checked by the compiler.
//   TESSERA_URL=http://127.0.0.1:8080 TESSERA_KEY=sk_test_… node examples/typescript/send-and-verify.ts
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './tessera.d.ts';

type ApiError = components['schemas']['Error']['error'];

/** A client of the API at `url` that sends `key` as bearer. */
export const createTessera = (url: string, key: string): Client<paths> =>
  createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });

/** What a person can do about an error; branch on `code`, never on `message`. */
const explain = ({ error }: { error: ApiError }): Error => {
  const { code, message, retry_after_seconds: wait, telegram_bot_url: link } = error;
  if (link !== undefined) return new Error(`${code}: open ${link} to get codes over Telegram`);
  return new Error(wait === undefined ? `${code}: ${message}` : `${code}: wait ${wait} seconds`);
};

/**
 * Sends a code to `phone` (E.164), asks `readCode` for what arrived and verifies it; resolves to the
 * id of the message. A code that is not right can be asked for again, up to four times.
 */
export const sendAndVerify = async (
  tessera: Client<paths>,
  phone: string,
  readCode: () => Promise<string>,
): Promise<string> => {
  // The key belongs to this one attempt: a repeat of the request with it sends nothing twice.
  const sent = await tessera.POST('/v1/otp/send', {
    params: { header: { 'Idempotency-Key': randomUUID() } },
    body: { phone },
  });
  if (sent.error) throw explain(sent.error);
  for (;;) {
    const code = await readCode();
    const verified = await tessera.POST('/v1/otp/verify', { body: { phone, code } });
    if (verified.data) return sent.data.data.message_id;
    if (verified.error.error.code !== 'INVALID_CODE') throw explain(verified.error);
  }
};

const ask = async (): Promise<string> => {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await terminal.question('the code that arrived: ');
  } finally {
    terminal.close();
  }
};

const main = async (): Promise<void> => {
  const { TESSERA_URL: url, TESSERA_KEY: key, TESSERA_PHONE: phone } = process.env;
  if (!url || !key) throw new Error('set TESSERA_URL and TESSERA_KEY');
  // In the sandbox no message goes out and every code is 123456.
  const readCode = key.startsWith('sk_test_') ? async () => '123456' : ask;
  const tessera = createTessera(url, key);
  const messageId = await sendAndVerify(tessera, phone ?? '+14155552671', readCode);
  console.log(`verified: ${messageId}`);
};

if (import.meta.main) {
  await main().catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
}
