// The OpenAPI document by other people's rules: Redocly's recommended ones, Spectral's for OpenAPI, and its examples.
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore from '@stoplight/spectral-core';
import spectralRulesets from '@stoplight/spectral-rulesets';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import test from 'ava';
import { openApiDocument } from '../../api/openapi.ts';
import { tagTexts } from '../../api/openapi-parts.ts';
import {
  exampleValues,
  leftOut,
  providerBodies,
  providerHeaders,
  shownOnly,
  textExamples,
} from '../../api/openapi-values.ts';
import { routes } from '../../api/routes.ts';

type Json = Record<string, unknown>;
type Media = { schema: Json; example?: unknown; examples?: Record<string, { $ref: string }> };
type Operation = {
  parameters?: { name: string; schema: Json; example: unknown }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
};
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { examples: Record<string, { value: unknown }> } & Json;
};

const text = JSON.stringify(openApiDocument(routes));
const document = JSON.parse(text) as Document;

const { schemas } = document.components;

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(
    ([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const,
  ),
);

test('Redocly’s recommended rules find nothing', async (t) => {
  const config = await createConfig({ extends: ['recommended'] });
  const found = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  t.deepEqual(
    found.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    [],
  );
});

test('Spectral’s rules for OpenAPI find nothing', async (t) => {
  const spectral = new spectralCore.Spectral();
  spectral.setRuleset(spectralRulesets.oas as never);
  const found = await spectral.run(JSON.parse(text));
  t.deepEqual(
    found.map(({ code, message, path }) => [code, message, path.join('/')]),
    [],
  );
});

const ajv = new Ajv2020({ strict: false });
(addFormatsModule as unknown as (instance: Ajv2020) => void)(ajv);

// Most answers share their schemas, those of errors all of them: each is compiled once.
const compiled = new Map<string, ReturnType<typeof ajv.compile>>();

const validatorOf = (schema: Json) => {
  const key = JSON.stringify(schema);
  const validate = compiled.get(key) ?? ajv.compile({ ...schema, components: { schemas } });
  compiled.set(key, validate);
  return validate;
};

test('every operation has an example of what it takes and what it answers, and each fits its schema', (t) => {
  for (const [what, operation] of operations) {
    const success = operation.responses['200'] ?? operation.responses['201'];
    const media = [
      ...Object.values(operation.requestBody?.content ?? {}),
      ...Object.values(success?.content ?? {}),
    ];
    t.true(media.length > 0, what);
    const parts = [...media, ...(operation.parameters ?? [])];
    for (const { schema, example } of parts) {
      t.not(example, undefined, what);
      const validate = validatorOf(schema);
      t.true(validate(example), `${what}: ${ajv.errorsText(validate.errors)}`);
    }
  }
});

test('every error has an example, which fits the answers it is given for', (t) => {
  let seen = 0;
  for (const [what, { responses }] of operations) {
    for (const { content } of Object.values(responses)) {
      const { schema, examples = {} } = content?.['application/json'] ?? { schema: {} };
      const validate = validatorOf(schema);
      for (const code of Object.keys(examples)) {
        seen++;
        const value = document.components.examples[code]?.value;
        t.true(validate(value), `${what} ${code}: ${ajv.errorsText(validate.errors)}`);
      }
    }
  }
  t.true(seen > 300);
});

test('no example is null where the field always has a value', (t) => {
  const visit = (schema: Json, example: unknown, what: string): void => {
    const properties = (schema.properties ?? {}) as Record<string, Json>;
    for (const [name, inner] of Object.entries(properties)) {
      if (typeof example !== 'object' || example === null || !(name in example)) continue;
      const value = (example as Json)[name];
      t.false(
        value === null && inner.type !== undefined && !String(inner.type).includes('null'),
        `${what}.${name}`,
      );
      visit(inner, value, `${what}.${name}`);
    }
  };
  for (const [what, { responses }] of operations) {
    const { schema, example } = responses['200']?.content?.['application/json'] ?? { schema: {} };
    visit(schema, example, what);
  }
});

test('every heading is explained, and no text is about an operation or field that is gone', (t) => {
  t.deepEqual(
    [...new Set(routes.map(({ tag }) => tag))].filter((tag) => !tagTexts[tag]),
    [],
  );
  const keys: string[] = operations.map(([what]) => what);
  const named = [leftOut, shownOnly, textExamples, providerBodies, providerHeaders].flatMap(
    Object.keys,
  );
  t.deepEqual(
    named.filter((key) => !keys.includes(key)),
    [],
  );
  t.deepEqual(
    Object.keys(exampleValues).filter((name) => !text.includes(`"${name}"`)),
    [],
  );
});
