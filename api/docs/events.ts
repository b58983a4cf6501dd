// Webhook kinds with their payloads, and when a delivery is tried again.
import { eventTexts } from '../../lib/messages/event-texts.ts';
import { deliverWithinMs, giveUpMs, waitsMs } from '../../lib/webhooks/rules.ts';
import { windowText } from './limits.ts';
import { code, join, json, table } from './page.ts';

const entries = Object.entries(eventTexts);

const anchor = (type: string): string => type.replace(/[._]/g, '-');

export const eventRows = (): string =>
  table(
    ['Type', 'When'],
    entries.map(([type, { about }]) => [`[${type}](#${anchor(type)})`, about]),
  );

const payload = (type: string, data: unknown) => ({
  id: 'evt_5f1c0e9b7a3d4c2e8b6f0a1d2c3e4f50',
  type,
  timestamp: '2026-11-20T12:00:21.000Z',
  mode: 'live',
  data,
});

export const eventExamples = (): string =>
  join(
    ...entries.flatMap(([type, { about, data }]) => [
      `### ${type} {#${anchor(type)}}`,
      about,
      json(payload(type, data)),
    ]),
  );

export const retryText = (): string =>
  `The first attempt is made at once, the others after ${waitsMs.map(windowText).join(', ')}: ${waitsMs.length + 1} attempts within ${windowText(deliverWithinMs)}. An endpoint that took nothing for ${windowText(giveUpMs)} is given up, and what is held for it goes out when you set the address again. ${code('Retry-After')} is obeyed.`;
