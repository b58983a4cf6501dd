// A message as it travels in jobs and events (snake_case), and back.
import type { MessageWire } from '../jobs.ts';
import type { Message } from './rules.ts';

export const toWire = (message: Message): MessageWire => ({
  id: message.id,
  account_id: message.accountId,
  mode: message.mode,
  origin: message.origin,
  phone: message.phone,
  country: message.country,
  request_id: message.requestId,
  plan: message.plan,
  price_micros: message.priceMicros,
  idempotency_hash: message.idempotencyHash,
});

export const fromWire = (wire: MessageWire): Message => ({
  id: wire.id,
  accountId: wire.account_id,
  mode: wire.mode,
  origin: wire.origin,
  phone: wire.phone,
  country: wire.country,
  requestId: wire.request_id,
  plan: wire.plan,
  priceMicros: wire.price_micros,
  idempotencyHash: wire.idempotency_hash,
});
