// Which codes a route can answer: its own, and those that come with what it does.
import { type ErrorCode, errorCatalogue } from '../lib/kernel/errors.ts';
import type { Auth, Route } from './route.ts';

const always: ErrorCode[] = ['INTERNAL_ERROR', 'SERVICE_UNAVAILABLE'];
const byAuth: Record<Auth, readonly ErrorCode[]> = {
  none: [],
  key: ['INVALID_API_KEY', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED'],
  session: ['INVALID_SESSION', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED'],
  account: ['INVALID_API_KEY', 'INVALID_SESSION', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED'],
  refresh: ['INVALID_SESSION', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED'],
  mfa: ['INVALID_SESSION', 'ACCOUNT_SUSPENDED', 'RATE_LIMIT_EXCEEDED'],
};
const withBody: ErrorCode[] = ['VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];
const withOnce: ErrorCode[] = ['IDEMPOTENCY_KEY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED'];

// A call nothing else can be wrong with can still come with a method its path does not know.
const orMethod = (codes: ErrorCode[]): ErrorCode[] =>
  codes.some((code) => errorCatalogue[code].status < 500)
    ? codes
    : ['METHOD_NOT_ALLOWED', ...codes];

/** An account may keep its keys from changing it. */
const managing = (route: Route): ErrorCode[] =>
  route.kind === 'json' && route.auth === 'account' && route.method !== 'GET'
    ? ['KEY_MANAGEMENT_DISABLED']
    : [];

/** Any request may lack what HTTP asks of it, such as its Host header. */
const ofHttp: ErrorCode[] = ['VALIDATION_ERROR'];

/** Every code the route can answer, each once. */
export const errorsOf = (route: Route): ErrorCode[] => [
  ...new Set([...orMethod(codesOf(route)), ...ofHttp]),
];

const codesOf = (route: Route): ErrorCode[] => {
  if (route.kind === 'raw') return [...new Set([...route.errors, ...always])];
  if (route.kind === 'csv') {
    const ofQuery: ErrorCode[] = route.query ? ['VALIDATION_ERROR'] : [];
    return [...new Set([...ofQuery, ...byAuth[route.auth], ...route.errors, ...always])];
  }
  const takesInput = route.body ?? route.params ?? route.query;
  return [
    ...new Set([
      ...(takesInput ? (['VALIDATION_ERROR'] as const) : []),
      ...(route.body ? withBody : []),
      ...byAuth[route.auth],
      ...managing(route),
      ...(route.sends ? withOnce : []),
      ...route.errors,
      ...always,
    ]),
  ];
};
