// What an operation of the ops listener is: a value like a public route, for callers who hold the token.
import type Joi from 'joi';
import type { OpsApp } from '../../lib/app.ts';
import type { Infer } from '../../lib/kernel/schema.ts';
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
export type OpsJsonRoute = Shared & {
  kind: 'json';
  body: Joi.ObjectSchema | undefined;
  params: Joi.ObjectSchema | undefined;
  query: Joi.ObjectSchema | undefined;
  handle(app: OpsApp, request: OpsRequest<never, never, never>): Promise<unknown>;
};

/** Answers a document that is not JSON: a page, a style sheet, a text for Prometheus. */
export type OpsTextRoute = Shared & {
  kind: 'text';
  method: 'GET';
  respond(
    app: OpsApp,
    request: { query: URLSearchParams; caller: OpsCaller; path: string },
  ): Promise<{
    status?: number;
    type: string;
    body: string | Buffer;
    headers?: Record<string, string>;
  }>;
};

export type OpsRoute = OpsJsonRoute | OpsTextRoute;

/** Ties the schemas of an operation to the types of its handler. */
export const opsRoute = <
  B extends Joi.ObjectSchema | undefined = undefined,
  P extends Joi.ObjectSchema | undefined = undefined,
  Q extends Joi.ObjectSchema | undefined = undefined,
>(
  definition: Shared & {
    body?: B;
    params?: P;
    query?: Q;
    handle(app: OpsApp, request: OpsRequest<B, P, Q>): Promise<unknown>;
  },
): OpsJsonRoute =>
  ({
    ...{ body: undefined, params: undefined, query: undefined },
    ...definition,
    kind: 'json',
  }) as unknown as OpsJsonRoute;

/** A document; its path may end in `/{rest}` for everything below it. */
export const opsText = (definition: Omit<OpsTextRoute, 'kind' | 'method'>): OpsTextRoute => ({
  ...definition,
  ...{ kind: 'text', method: 'GET' },
});
