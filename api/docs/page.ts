// A page of the documentation while it is made: Markdown with a place in the navigation.

export type Page = {
  /** Path below /docs without a slash at its ends; '' is the first page. */
  path: string;
  title: string;
  /** One sentence, for the index and the search. */
  summary: string;
  /** Heading of the navigation; undefined: the page is found through others. */
  section: string | undefined;
  /** Page it belongs to, for what is not in the navigation. */
  parent?: { path: string; title: string };
  /** Shown in the navigation in the place of the title. */
  label?: string;
  /** Without the title. */
  markdown: string;
};

/** What the generated parts are made from: the OpenAPI document, and the settings a customer feels. */
export type Facts = {
  openapi: Record<string, unknown>;
  version: string;
  playground: 'off' | 'sandbox' | 'live';
  turnstileSiteKey: string;
  turnstileBaseUrl: string;
  trialVerifications: number;
  /** Unverified messages on the shared number before a deposit. */
  sharedGrant: { unverified: number; perVerified: number };
  /** What unverified messages of 24 hours may cost the service. */
  exposure: { trialMicros: number; paidMicros: number; timesCharged: number };
  priceMicros: number;
  sharedHourly: number;
  floorMinimumDaily: number;
};

/** Where a page is served. */
export const urlOf = (path: string): string => (path === '' ? '/docs' : `/docs/${path}`);

/** Where the same page is served as Markdown. */
export const markdownUrlOf = (path: string): string => `/docs/${path === '' ? 'index' : path}.md`;

const cell = (value: string): string => value.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** A Markdown table; without rows an empty text. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? ''
    : [head, head.map(() => '---'), ...rows]
        .map((row) => `| ${row.map(cell).join(' | ')} |`)
        .join('\n');

export const code = (value: string): string => `\`${value}\``;

/** A fenced block. */
export const block = (language: string, text: string): string =>
  `\`\`\`${language}\n${text}\n\`\`\``;

export const json = (value: unknown): string => block('json', JSON.stringify(value, null, 2));

/** Parts with an empty line between them; empty ones are left out. */
export const join = (...parts: readonly (string | undefined)[]): string =>
  parts.filter(Boolean).join('\n\n');

/** The address in examples; the pages put that of the server they come from in its place. */
export const exampleUrl = 'http://127.0.0.1:8080';
