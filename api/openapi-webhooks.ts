// The webhooks of the OpenAPI document: one operation per event type, from the event catalogue.
import { eventCatalogue, eventSchema, type PublicEventType } from '../lib/webhooks/catalogue.ts';
import { exampleOf } from './openapi-examples.ts';
import { schemaOf } from './openapi-schema.ts';
import { eventValues } from './openapi-values.ts';

type Json = Record<string, unknown>;

const header = (name: string, description: string, example: string): Json => ({
  ...{ name, in: 'header', required: true, description, schema: { type: 'string' }, example },
});

const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

/** The signature as Standard Webhooks 1.0.0 has it. */
const headers: Json[] = [
  header('webhook-id', 'Id of the event; the same in every attempt.', 'evt_5f1c0e9b7a3d4c2e'),
  header('webhook-timestamp', 'Unix seconds of this attempt.', '1795176000'),
  header('webhook-signature', 'One v1,base64 per secret, with spaces between.', signature),
];

/** What an example says of its data beyond the names of the fields: an event tells how far its message came. */
const eventExample = (type: PublicEventType, schema: Json): Json => {
  const example = exampleOf(schema) as Json;
  return { ...example, data: { ...(example.data as Json), ...eventValues[type] } };
};

const operationId = (type: string): string =>
  `on${type
    .split(/[._]/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')}`;

const operation = (type: PublicEventType): Json => {
  const schema = schemaOf(eventSchema(type));
  return {
    operationId: operationId(type),
    summary: eventCatalogue[type].summary,
    description:
      'Posted to webhook_url and signed as Standard Webhooks are. Any 2xx within 15 seconds counts as taken; ' +
      'everything else is tried again over three days.',
    tags: ['Webhooks'],
    security: [],
    parameters: headers,
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: eventExample(type, schema) } },
    },
    responses: { '2XX': { description: 'Taken.' }, '410': { description: 'Send no more.' } },
  };
};

/** All of them by type. */
export const eventOperations = (): Json =>
  Object.fromEntries(
    (Object.keys(eventCatalogue) as PublicEventType[]).map((type) => [
      type,
      { post: operation(type) },
    ]),
  );
