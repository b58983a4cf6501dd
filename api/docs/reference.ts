// The API reference: one page per operation, from the OpenAPI document.
import { errorHelp } from '../../lib/kernel/error-help.ts';
import { type ErrorCode, errorCatalogue } from '../../lib/kernel/errors.ts';
import { aboutOf, fieldTable, typeText } from './fields.ts';
import {
  headingsOf,
  type Json,
  type Media,
  type Operation,
  operationsOf,
  type Parameter,
} from './operations.ts';
import { block, code, exampleUrl, join, json, type Page, table } from './page.ts';

const parameterTable = (parameters: readonly Parameter[]): string =>
  table(
    ['Parameter', 'In', 'Type', 'Required', 'About'],
    parameters.map(({ name, in: place, schema, required, description }) => [
      ...[code(name), place, typeText(schema), required ? 'yes' : 'no'],
      aboutOf({ ...schema, description }),
    ]),
  );

const credentialTexts: Record<string, string> = {
  apiKey: 'an [API key](/docs/authentication)',
  session: 'the [session token](/docs/authentication) of a login',
  refreshToken: 'the refresh token of a login',
  mfaToken: 'the `mfa_token` of a login',
};

const variableOf: Record<string, string> = {
  apiKey: 'TESSERA_KEY',
  session: 'TESSERA_SESSION',
  refreshToken: 'TESSERA_REFRESH_TOKEN',
  mfaToken: 'TESSERA_MFA_TOKEN',
};

/** The call as a line for a shell. */
export const curlOf = ({ method, path, parameters, body, credentials }: Operation): string => {
  const filled = parameters
    .filter(({ in: place }) => place === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
  const [credential] = credentials;
  const once = parameters.some(({ name }) => name === 'Idempotency-Key');
  const proofs = parameters.filter(({ in: place, required }) => place === 'header' && required);
  const lines = [
    `curl ${method === 'GET' || (method === 'POST' && body) ? '' : `-X ${method} `}${exampleUrl}${filled}`,
    ...(credential ? [`-H "Authorization: Bearer $${variableOf[credential]}"`] : []),
    ...(once ? ["-H 'Idempotency-Key: signup-8c1f4a52'"] : []),
    ...proofs.map(({ name, example }) => `-H '${name}: ${String(example)}'`),
    ...(body
      ? [
          "-H 'Content-Type: application/json'",
          `-d '${JSON.stringify(body.example).replaceAll("'", "'\\''")}'`,
        ]
      : []),
  ];
  return lines.join(' \\\n  ');
};

const answerBlock = ({ type, media }: Operation['success']): string => {
  if (type === 'application/json') return json(media.example);
  return media.example ? block('text', String(media.example).trimEnd()) : '';
};

const dataOf = (media: Media): Json =>
  ((media.schema.properties ?? {}) as Record<string, Json>).data ?? media.schema;

const errorTable = (errors: readonly string[]): string =>
  table(
    ['Status', 'Code', 'Cause'],
    errors.map((name) => [
      String(errorCatalogue[name as ErrorCode].status),
      `[${name}](/docs/errors/${name})`,
      errorHelp[name as ErrorCode].cause.split(/(?<=\.)\s/)[0] ?? '',
    ]),
  );

const section = (title: string, content: string): string =>
  content ? `## ${title}\n\n${content}` : '';

const operationPage = (operation: Operation): Page => {
  const { method, path, title, about, parameters, body, credentials, success, errors } = operation;
  const takes = credentials.map((name) => credentialTexts[name] ?? name).join(' or ');
  const fields = success.type === 'application/json' ? fieldTable(dataOf(success.media)) : '';
  return {
    path: operation.page,
    title,
    summary: `${method} ${path}`,
    section: undefined,
    parent: { path: 'api', title: 'API reference' },
    markdown: join(
      block('http', `${method} ${path}`),
      about,
      section('Authentication', takes ? `\`Authorization: Bearer …\` with ${takes}.` : 'None.'),
      section('Parameters', parameterTable(parameters)),
      section('Body', body ? fieldTable(body.schema) || 'As the provider sends it.' : ''),
      section('Example', block('sh', curlOf(operation))),
      section(
        `Answer ${success.status}`,
        join(answerBlock(success), fields && 'Inside `data`:', fields),
      ),
      section('Errors', errorTable(errors)),
    ),
  };
};

const indexPage = (openapi: Json, operations: readonly Operation[]): Page => ({
  path: 'api',
  title: 'API reference',
  summary: `All ${operations.length} operations, from the OpenAPI document.`,
  section: 'Reference',
  markdown: join(
    `Requests and answers are JSON. Success is \`{"data": {…}}\`, failure \`{"error": {…}}\`. Unknown body fields are refused. The document behind these pages is at [/openapi.json](/openapi.json); clients can be generated from it.`,
    ...headingsOf(openapi).flatMap(({ name, description }) => [
      `## ${name}`,
      description,
      table(
        ['Call', 'What it does'],
        operations
          .filter(({ tag }) => tag === name)
          .map(({ method, path, page, title }) => [`[${method} ${path}](/docs/${page})`, title]),
      ),
    ]),
  ),
});

/** The pages of the reference, the index first. */
export const referencePages = (openapi: Json): Page[] => {
  const operations = operationsOf(openapi);
  return [indexPage(openapi, operations), ...operations.map(operationPage)];
};
