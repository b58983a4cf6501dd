// What an operation of the ops listener is: a value like a public route, for callers who hold the token.
import type { IncomingHttpHeaders } from 'node:http';
import type Joi from 'joi';
import type { Infer } from '../../lib/kernel/schema.ts';
import type { OpsApp } from '../../lib/ops-app.ts';
import type { OpsCaller } from './auth.ts';

type Part<S> = S extends Joi.Schema ? Infer<S> : undefined;

export type OpsRequest<B, P, Q> = {
  body: Part<B>;
  params: Part<P>;
  query: Part<Q>;
  /** Who asks, for the audit log. */
  caller: OpsCaller;
  requestId: string;
};

type Shared = {
  method: 'GET' | 'POST';
  /** Path with parameters in braces. */
  path: string;
  summary: string;
};

/** Answers `{data}` as JSON. Every POST that changes something goes through the audit log. */
export type OpsJsonRoute<B = never, P = never, Q = never, R = unknown> = Shared & {
  kind: 'json';
  body: Joi.ObjectSchema | undefined;
  params: Joi.ObjectSchema | undefined;
  query: Joi.ObjectSchema | undefined;
  handle(app: OpsApp, request: OpsRequest<B, P, Q>): Promise<R>;
};

/** Answers a document that is not JSON: a page, a style sheet, a text for Prometheus. */
export type OpsTextRoute = Shared & {
  kind: 'text';
  method: 'GET';
  respond(
    app: OpsApp,
    request: {
      query: URLSearchParams;
      params: Record<string, string>;
      headers: IncomingHttpHeaders;
      caller: OpsCaller;
      path: string;
      requestId: string;
      /** Whether the request came over TLS. */
      secure: boolean;
    },
  ): Promise<{
    status?: number;
    type: string;
    body: string | Buffer;
    headers?: Record<string, string>;
  }>;
};

/** Takes a form of the console and sends the browser on to a page that says what came of it. */
export type OpsFormRoute = Shared & {
  kind: 'form';
  method: 'POST';
  submit(
    app: OpsApp,
    request: {
      form: URLSearchParams;
      params: Record<string, string>;
      caller: OpsCaller;
      requestId: string;
      /** Whether the request came over TLS. */
      secure: boolean;
    },
  ): Promise<{ to: string; headers: Record<string, string> }>;
};

// The parts of a request are whatever the schemas of a route say.
// biome-ignore lint/suspicious/noExplicitAny: the table holds routes of all shapes
export type OpsRoute = OpsJsonRoute<any, any, any> | OpsTextRoute | OpsFormRoute;

/** Ties the schemas of an operation to the types of its handler and of what it answers. */
export const opsRoute = <
  R,
  B extends Joi.ObjectSchema | undefined = undefined,
  P extends Joi.ObjectSchema | undefined = undefined,
  Q extends Joi.ObjectSchema | undefined = undefined,
>(
  definition: Shared & {
    body?: B;
    params?: P;
    query?: Q;
    handle(app: OpsApp, request: OpsRequest<B, P, Q>): Promise<R>;
  },
): OpsJsonRoute<B, P, Q, R> =>
  ({
    ...{ body: undefined, params: undefined, query: undefined },
    ...definition,
    kind: 'json',
  }) as unknown as OpsJsonRoute<B, P, Q, R>;

/** A document; its path may end in `/{rest}` for everything below it. */
export const opsText = (definition: Omit<OpsTextRoute, 'kind' | 'method'>): OpsTextRoute => ({
  ...definition,
  ...{ kind: 'text', method: 'GET' },
});

/** A form; where it leads is said by its answer. */
export const opsForm = (definition: Omit<OpsFormRoute, 'kind' | 'method'>): OpsFormRoute => ({
  ...definition,
  ...{ kind: 'form', method: 'POST' },
});
