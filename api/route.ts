// What an endpoint is: a value from which validation, types, errors and the OpenAPI document are read.
import type { IncomingHttpHeaders } from 'node:http';
import type Joi from 'joi';
import type { Lobby } from '../lib/accounts/lobby.ts';
import type { Account } from '../lib/accounts/rules.ts';
import type { ApiApp } from '../lib/app.ts';
import type { ErrorCode } from '../lib/kernel/errors.ts';
import type { Infer } from '../lib/kernel/schema.ts';
import type { Principal } from '../lib/keys/rules.ts';
import type { Tier } from '../lib/limits/rules.ts';
import type { Mode } from '../lib/messages/rules.ts';
import type { Visitor } from '../lib/sessions/open.ts';
import type { Session } from '../lib/sessions/rules.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/**
 * Who may call: anybody; the holder of an API key; somebody with a session; either of these; or the holder of a
 * refresh token or of the token between password and second factor, which the call itself checks.
 */
export type Auth = 'none' | 'key' | 'session' | 'account' | 'refresh' | 'mfa';

/** What each kind of credential tells a handler about its caller. */
export type Callers = {
  none: object;
  key: { principal: Principal; tier: Tier };
  session: { account: Account; session: Session };
  account: {
    account: Account;
    session: Session | undefined;
    keyMode: Mode | undefined;
    keyId: string | undefined;
    /** The call is made with a key that was rotated and works only for its grace. */
    keyEnds: boolean;
  };
  refresh: { token: string };
  mfa: { token: string };
};

type Part<S> = S extends Joi.Schema ? Infer<S> : undefined;

export type Request<A extends Auth, B, P, Q> = Callers[A] & {
  body: Part<B>;
  params: Part<P>;
  query: Part<Q>;
  requestId: string;
  /** Where the call comes from, as far as proxies are believed; `source` is an opaque name of the address. */
  visitor(): Visitor;
  header(name: string): string | undefined;
  setHeaders(headers: Record<string, string>): void;
};

type Shared = {
  method: Method;
  /** Path template with parameters in braces, as OpenAPI writes it. */
  path: string;
  /** Heading of the reference under which the route is found. */
  tag: string;
  summary: string;
  /** What the reference says beyond the summary, as Markdown of one paragraph. */
  about?: string;
  /** Codes this route can answer beyond those every route of its kind has. */
  errors: readonly ErrorCode[];
};

/** An endpoint that takes JSON and answers `{data}`. */
export type JsonRoute = Shared & {
  kind: 'json';
  auth: Auth;
  /** Where the route waits for its turn, before its body is read. */
  lobby?: (app: ApiApp) => Lobby;
  /** The route sends something: it takes an Idempotency-Key and counts as a send in flight. */
  sends: boolean;
  body: Joi.ObjectSchema | undefined;
  params: Joi.ObjectSchema | undefined;
  query: Joi.ObjectSchema | undefined;
  data: Joi.Schema;
  /** Status of success. */
  status: 200 | 201;
  handle(app: ApiApp, request: Request<'key', never, never, never>): Promise<unknown>;
};

/** An endpoint with a wire format that is not ours: a provider's webhook, or a document. */
export type RawRoute = Shared & {
  kind: 'raw';
  auth: 'none';
  /** Media type of the answer. */
  produces: string;
  maxBodyBytes: number;
  /** Looks at a call before its body is read; whoever gets an answer here is not read at all. */
  refuse?(app: ApiApp, head: RawHead): RawAnswer | undefined;
  handle(app: ApiApp, request: RawRequest): Promise<RawAnswer>;
};

export type RawHead = {
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  requestId: string;
};

export type RawRequest = RawHead & { body: Buffer };

export type RawAnswer = {
  status: number;
  body: string | Buffer;
  /** A Content-Type here goes before what the route says. */
  headers?: Record<string, string>;
  /** The jobs that the call became, for its log line. */
  jobs?: readonly string[];
};

/** An endpoint that answers a file of CSV, streamed. */
export type CsvRoute = Shared & {
  kind: 'csv';
  auth: 'account';
  sends: false;
  query: Joi.ObjectSchema | undefined;
  /** Name of the file. */
  file: string;
  /** Everything that can be refused is refused before the first line is made. */
  rows(app: ApiApp, request: CsvRequest<never>): Promise<AsyncIterable<string>>;
};

export type CsvRequest<Q> = Callers['account'] & { query: Part<Q> };

export type Route = JsonRoute | RawRoute | CsvRoute;

type Definition<A extends Auth, B, P, Q, D> = Omit<Shared, 'errors'> & {
  auth: A;
  errors?: readonly ErrorCode[];
  lobby?: (app: ApiApp) => Lobby;
  sends?: boolean;
  status?: 200 | 201;
  body?: B;
  params?: P;
  query?: Q;
  data: D;
  handle(app: ApiApp, request: Request<A, B, P, Q>): Promise<Part<D>>;
};

/** Ties the schemas of a JSON endpoint to the types of its handler. */
export const route = <
  A extends Auth,
  D extends Joi.Schema,
  B extends Joi.ObjectSchema | undefined = undefined,
  P extends Joi.ObjectSchema | undefined = undefined,
  Q extends Joi.ObjectSchema | undefined = undefined,
>(
  definition: Definition<A, B, P, Q, D>,
): JsonRoute =>
  ({
    errors: [],
    sends: false,
    status: 200,
    body: undefined,
    params: undefined,
    query: undefined,
    ...definition,
    kind: 'json',
  }) as unknown as JsonRoute;

export const rawRoute = (definition: Omit<RawRoute, 'kind' | 'auth'>): RawRoute => ({
  ...definition,
  kind: 'raw',
  auth: 'none',
});

/** Ties the query of an export to the type its rows are made from. */
export const csvRoute = <Q extends Joi.ObjectSchema | undefined = undefined>(
  definition: Omit<CsvRoute, 'kind' | 'auth' | 'sends' | 'query' | 'rows' | 'errors'> & {
    query?: Q;
    rows(app: ApiApp, request: CsvRequest<Q>): Promise<AsyncIterable<string>>;
  },
): CsvRoute =>
  ({
    errors: [],
    query: undefined,
    ...definition,
    ...{ kind: 'csv', auth: 'account', sends: false },
  }) as unknown as CsvRoute;
