// Operations of the OpenAPI document as the reference needs them.

export type Json = Record<string, unknown>;
export type Media = { schema: Json; example?: unknown };
export type Parameter = {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: Json;
  example?: unknown;
};
export type Answer = { description: string; content?: Record<string, Media> };

export type Operation = {
  method: string;
  path: string;
  title: string;
  about: string;
  tag: string;
  /** Path of its page below /docs. */
  page: string;
  parameters: Parameter[];
  body: Media | undefined;
  /** Names of the credentials it takes; none: it is open. */
  credentials: string[];
  success: { status: string; type: string; media: Media };
  errors: string[];
};

type Raw = {
  summary: string;
  description: string;
  tags: string[];
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
  security: Json[];
  responses: Record<string, Answer & { content?: Record<string, Media & { examples?: Json }> }>;
};

const kebab = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replace(/-(\d)/g, '$1');

const successOf = ({ responses }: Raw): Operation['success'] => {
  const status = responses['201'] ? '201' : '200';
  const [[type, media] = ['', { schema: {} }]] = Object.entries(responses[status]?.content ?? {});
  return { status, type, media };
};

const errorsOf = ({ responses }: Raw): string[] =>
  Object.values(responses).flatMap(({ content }) =>
    Object.keys(content?.['application/json']?.examples ?? {}),
  );

const operationOf = (method: string, path: string, raw: Raw): Operation => ({
  method: method.toUpperCase(),
  path,
  title: raw.summary.replace(/\.$/, ''),
  about: raw.description,
  tag: raw.tags[0] ?? '',
  page: `api/${kebab(raw.operationId)}`,
  parameters: raw.parameters ?? [],
  body: raw.requestBody?.content['application/json'],
  credentials: raw.security.flatMap(Object.keys),
  success: successOf(raw),
  errors: errorsOf(raw),
});

/** Every operation of the document, in its order. */
export const operationsOf = (openapi: Json): Operation[] =>
  Object.entries(openapi.paths as Record<string, Record<string, Raw>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => operationOf(method, path, raw)),
  );

/** The headings of the document with what they are about. */
export const headingsOf = (openapi: Json): { name: string; description: string }[] =>
  openapi.tags as { name: string; description: string }[];
