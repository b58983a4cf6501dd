// Payloads as operators may see them: what it is about stays, what could be abused goes.
import { maskPhone } from '../kernel/phone.ts';
import { redact } from '../kernel/redact.ts';

const hidden = /code|secret|token|key|url|password|hash|waiter|chat_id|user_id|ip/i;
const named = /^(id|.*_id|type|kind|reason|status|event|at|.*_at)$/;
const safeName = /^[\w .:@-]{1,80}$/;
const e164 = /^\+[1-9]\d{6,14}$/;
const deepest = 8;

const maskText = (name: string, text: string): string => {
  if (e164.test(text)) return maskPhone(text);
  return named.test(name) && safeName.test(text) ? text : redact(text).slice(0, 300);
};

/** A copy without codes, secrets and whole phone numbers. */
export const maskPayload = (value: unknown, name = '', depth = 0): unknown => {
  if (value === null || typeof value === 'boolean') return value;
  if (depth > 0 && hidden.test(name) && name !== 'message_id') return '***';
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return maskText(name, value);
  if (depth >= deepest) return '***';
  if (Array.isArray(value)) return value.map((one) => maskPayload(one, name, depth + 1));
  return Object.fromEntries(
    Object.entries(value as object).map(([key, one]) => [key, maskPayload(one, key, depth + 1)]),
  );
};

/** The payload of a letter; what is no JSON is told by its size alone. */
export const readPayload = (content: Buffer): unknown => {
  try {
    return maskPayload(JSON.parse(content.toString('utf8')));
  } catch {
    return { unreadable_bytes: content.length };
  }
};
