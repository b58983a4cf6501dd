// A client of the public API for tests: every answer it sees is checked against the OpenAPI document.
import { checkAnswer } from './contract.ts';

export type Answer = {
  status: number;
  headers: Headers;
  data: Record<string, unknown>;
  error: Record<string, unknown> & { code?: string };
  text: string;
};

export type Client = {
  key: string | undefined;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  send(phone: string, headers?: Record<string, string>): Promise<Answer>;
  deliver(phone: string, code: string, headers?: Record<string, string>): Promise<Answer>;
  verify(phone: string, code: string): Promise<Answer>;
};

export type CallOptions = {
  body?: unknown;
  raw?: string | Buffer;
  headers?: Record<string, string>;
};

const parse = (text: string): { data?: Answer['data']; error?: Answer['error'] } => {
  try {
    return JSON.parse(text) as { data?: Answer['data']; error?: Answer['error'] };
  } catch {
    return {};
  }
};

/** A client that sends `key` as bearer. */
export const createClient = (url: string, key: string | undefined): Client => {
  const call: Client['call'] = async (method, path, { body, raw, headers } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(content === undefined ? {} : { body: content }),
    });
    const text = await answer.text();
    checkAnswer(method, path, answer, text);
    const { data = {}, error = {} } = parse(text);
    return { status: answer.status, headers: answer.headers, data, error, text };
  };
  const post: Client['post'] = (path, body, headers = {}) => call('POST', path, { body, headers });
  return {
    key,
    call,
    post,
    get: (path, headers = {}) => call('GET', path, { headers }),
    send: (phone, headers) => post('/v1/otp/send', { phone }, headers),
    deliver: (phone, code, headers) => post('/v1/otp/deliver', { phone, code }, headers),
    verify: (phone, code) => post('/v1/otp/verify', { phone, code }),
  };
};
