// Webhook kinds with their payloads, and when a delivery is tried again.
import { failureReasons } from '../../lib/messages/rules.ts';
import type { PublicEventType } from '../../lib/webhooks/catalogue.ts';
import { deliverWithinMs, giveUp, waitsMs } from '../../lib/webhooks/rules.ts';
import { eventNotes } from './event-notes.ts';
import { fieldTable } from './fields.ts';
import { windowText } from './limits.ts';
import type { Json, Media } from './operations.ts';
import { code, join, json, table } from './page.ts';

type Kind = { type: string; summary: string; media: Media };

type Raw = { post: { summary: string; requestBody: { content: Record<string, Media> } } };

const kindsOf = (openapi: Json): Kind[] =>
  Object.entries((openapi.webhooks ?? {}) as Record<string, Raw>).map(([type, { post }]) => ({
    ...{ type, summary: post.summary },
    media: post.requestBody.content['application/json'] ?? { schema: {} },
  }));

const anchor = (type: string): string => type.replace(/[._]/g, '-');

const noteOf = (type: string): string => eventNotes[type as PublicEventType] ?? '';

export const eventRows = (openapi: Json): string =>
  table(
    ['Type', 'When', 'What to do'],
    kindsOf(openapi).map(({ type, summary }) => [
      `[${type}](#${anchor(type)})`,
      summary,
      noteOf(type),
    ]),
  );

const dataOf = ({ schema }: Media): Json =>
  ((schema.properties ?? {}) as Record<string, Json>).data ?? {};

export const eventExamples = (openapi: Json): string =>
  join(
    ...kindsOf(openapi).flatMap(({ type, summary, media }) => [
      `### ${type} {#${anchor(type)}}`,
      summary,
      json(media.example),
      fieldTable(dataOf(media)),
    ]),
  );

export const reasonRows = (): string =>
  table(
    ['`failure_reason`', 'What it means'],
    Object.entries(failureReasons).map(([name, meaning]) => [code(name), meaning]),
  );

export const retryText = (): string =>
  `The first attempt is made at once, the others after ${waitsMs.map(windowText).join(', ')}: ${waitsMs.length + 1} attempts within ${windowText(deliverWithinMs)}. ${code('Retry-After')} is obeyed. An endpoint that took nothing for ${windowText(giveUp.afterMs)}, through ${giveUp.failures} attempts on ${giveUp.days} days at least, is given up: what comes is held, and one event a day is tried. It all goes out when that one is taken, or when you set the address again. An endpoint that answered 410 is not called again before you set it.`;
