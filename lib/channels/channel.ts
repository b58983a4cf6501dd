// What every channel answers when it is asked to send a code.
import { type Http, type HttpAnswer, HttpFailure, type HttpRequest } from '../infra/http.ts';

/**
 * Why a channel refused, as far as the sender must tell apart (reference 02 section 3): retry (its own passing
 * trouble), throttle (our number sends too fast), pair (this recipient gets too much), unreachable (this recipient,
 * this channel: no), template, broken (token, permission, payment: the connection), bug (our request).
 */
export type RefusalClass =
  | 'retry'
  | 'throttle'
  | 'pair'
  | 'unreachable'
  | 'template'
  | 'broken'
  | 'bug';

export type ChannelResult =
  | { kind: 'accepted'; providerId: string }
  /** Certainly not sent. `code` is the provider's number for it. */
  | { kind: 'refused'; refusal: RefusalClass; code: number; retryAfterSeconds?: number }
  /** The call may have arrived; only the provider's echo can tell. */
  | { kind: 'unknown'; detail: string };

/** Parses JSON that a provider sent; undefined for anything that is not an object. */
export const parseObject = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

/** The member `name` of a JSON object, if it is an object itself. */
export const child = (
  value: Record<string, unknown> | undefined,
  name: string,
): Record<string, unknown> | undefined => {
  const member = value?.[name];
  return typeof member === 'object' && member !== null
    ? (member as Record<string, unknown>)
    : undefined;
};

/** Asks a provider and reads its answer; a call without an answer is unknown, unless it certainly never left. */
export const ask = async (
  http: Http,
  request: HttpRequest,
  read: (answer: HttpAnswer) => ChannelResult,
): Promise<ChannelResult> => {
  try {
    return read(await http.send(request));
  } catch (error) {
    if (!(error instanceof HttpFailure)) throw error;
    return error.sent
      ? { kind: 'unknown', detail: error.message }
      : { kind: 'refused', refusal: 'retry', code: 0 };
  }
};
