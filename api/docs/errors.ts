// One page per error code, and the table of them all.
import { errorHelp } from '../../lib/kernel/error-help.ts';
import { type ErrorCode, errorCatalogue, type Retry } from '../../lib/kernel/errors.ts';
import { magicNumbers } from '../../lib/otp/sandbox.ts';
import { errorExample } from '../openapi-examples.ts';
import { join, json, code as mono, type Page, table } from './page.ts';

const retries: Record<Retry, { short: string; long: string }> = {
  yes: {
    short: 'yes',
    long: '**Yes, as it is.** A repeat may well succeed; sends are safe to repeat with the same `Idempotency-Key`.',
  },
  after: {
    short: 'after waiting',
    long: '**Yes, after waiting.** `retry_after_seconds` and the `Retry-After` header say how long; sooner is of no use.',
  },
  no: {
    short: 'no',
    long: '**No.** The same request gets the same answer until something has changed.',
  },
};

const codes = Object.keys(errorCatalogue) as ErrorCode[];

const linksOf = (retry: Retry): string =>
  codes
    .filter((code) => errorCatalogue[code].retry === retry)
    .map((code) => `[${code}](/docs/errors/${code})`)
    .join(', ');

/** Which answers to repeat, by what the catalogue says of each code. */
export const retryRows = (): string =>
  table(
    ['What came back', 'Repeat it?'],
    [
      [`No answer at all, ${linksOf('yes')}`, 'Yes, as it is.'],
      [linksOf('after'), 'Yes, after `retry_after_seconds`, which `Retry-After` says, too.'],
      [
        'Every other error',
        'No: the same request gets the same answer until something changes. That holds for [BILLING_ERROR](/docs/errors/BILLING_ERROR), too, though it is a 500: the code was right, and is used.',
      ],
    ],
  );

/** The operations that can answer a code, by name in the document. */
const operationsWith = (operations: readonly OperationErrors[], code: ErrorCode): string =>
  operations
    .filter(({ errors }) => errors.includes(code))
    .map(({ title, path }) => `- [${title}](/docs/${path})`)
    .join('\n');

export type OperationErrors = { title: string; path: string; errors: readonly string[] };

const sandboxText = (code: ErrorCode): string => {
  const numbers = magicNumbers.filter((entry) => entry.code === code);
  if (numbers.length === 0) return errorHelp[code].provoke ?? '';
  const stages = {
    admission: 'at once, with `send`, `deliver` and the playground',
    channel: 'as the outcome of a `send` or `deliver`',
    verify: 'with `verify`',
    totp: 'with TOTP `enroll` and `verify`',
  };
  return numbers
    .map(
      ({ phone, stage }) => `With a test key, the phone ${mono(phone)} gives it ${stages[stage]}.`,
    )
    .join(' ');
};

const errorPage = (operations: readonly OperationErrors[], code: ErrorCode): Page => {
  const { status, message, retry } = errorCatalogue[code];
  const { cause, fix } = errorHelp[code];
  const from = operationsWith(operations, code);
  const common = operations.filter(({ errors }) => errors.includes(code)).length > 20;
  return {
    path: `errors/${code}`,
    title: code,
    summary: message,
    section: undefined,
    parent: { path: 'errors', title: 'Errors' },
    markdown: join(
      `HTTP ${status}. *${message}*`,
      '## What causes it',
      cause,
      '## What to do',
      fix,
      '## Does a retry help?',
      retries[retry].long,
      '## In the sandbox',
      sandboxText(code),
      '## What it looks like',
      json(errorExample(code)),
      '## Where it comes from',
      common
        ? 'Most calls can answer it; each names its errors in the [reference](/docs/api).'
        : from || 'No call of the public API answers it at present.',
    ),
  };
};

const indexPage: Page = {
  path: 'errors',
  title: 'Errors',
  summary: 'Every code, its status, and whether a retry helps.',
  section: 'Reference',
  markdown: join(
    'Every failure has the same envelope. Branch on the HTTP status and `error.code`: codes are stable, `message` is for people and may change. Each code has a page of its own with its cause, what to do about it, and the sandbox number that produces it.',
    json(errorExample('RATE_LIMIT_EXCEEDED')),
    'Every answer carries `X-Request-Id`; errors repeat it as `request_id`. It runs through logs and webhooks: name it when you ask for help.',
    table(
      ['Code', 'Status', 'Retry?', 'In short'],
      codes.map((code) => {
        const { status, retry, message } = errorCatalogue[code];
        return [`[${code}](/docs/errors/${code})`, String(status), retries[retry].short, message];
      }),
    ),
  ),
};

export const errorPages = (operations: readonly OperationErrors[]): Page[] => [
  indexPage,
  ...codes.map((code) => errorPage(operations, code)),
];
