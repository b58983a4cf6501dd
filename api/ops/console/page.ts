// What a page of the console is, and what a form of it: values that become routes.

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type ErrorCode, errorCatalogue, ServiceError } from '../../../lib/kernel/errors.ts';
import { describeError } from '../../../lib/kernel/redact.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { type Asked, ask } from '../ask.ts';
import type { OpsCaller } from '../auth.ts';
import {
  type OpsFormRoute,
  type OpsJsonRoute,
  type OpsTextRoute,
  opsForm,
  opsText,
} from '../route.ts';
import { type Flash, flashCookie, noFlashCookie, readFlash } from './flash.ts';
import { type Html, html, render } from './html.ts';
import { frame } from './layout.ts';
import { excuse, wrongFields } from './section.ts';
import { lookAround, standingOf } from './snapshot.ts';

type Given = Omit<Asked, 'caller' | 'requestId'>;

/** What a page or form has in hand. */
export type Visit = {
  app: OpsApp;
  caller: OpsCaller;
  params: Record<string, string>;
  query: URLSearchParams;
  /** Runs an operation of the ops listener in this process. */
  run<B, P, Q, R>(route: OpsJsonRoute<B, P, Q, R>, given?: Given): Promise<R>;
};

/** A page whose title is known only with its content. */
export type Titled = { title: string; content: Html };

export type Page = {
  path: string;
  /** The path of the entry in the menu it belongs to. */
  menu: string;
  title: string;
  /** How often the page asks for what is new, seconds. */
  everySeconds: number;
  /** Whether it has plots. */
  plots?: boolean;
  body(visit: Visit): Promise<Html | Titled>;
};

const zip = promisify(gzip);
const smallest = 1_024;

const visitOf = (
  app: OpsApp,
  given: Pick<Visit, 'caller' | 'params' | 'query'> & { requestId: string },
): Visit => {
  const { caller, params, query, requestId } = given;
  const run: Visit['run'] = (route, more = {}) => ask(app, route, { ...more, caller, requestId });
  return { app, caller, params, query, run };
};

/** An engine that is away, or a page that is late, is not our mistake, and passes by itself. */
const codeOf = (error: unknown, why: string | undefined): ErrorCode => {
  if (error instanceof ServiceError) return error.code;
  return why === undefined ? 'INTERNAL_ERROR' : 'SERVICE_UNAVAILABLE';
};

/** The page in the place of one that cannot be made. */
const trouble = (app: OpsApp, requestId: string, error: unknown) => {
  const why = excuse(error);
  if (why === undefined) {
    app.log.warn({ request_id: requestId, reason: describeError(error) }, 'a page was not made');
  }
  const code = codeOf(error, why);
  const text = why ?? `Something went wrong on our side. The log has it under ${requestId}.`;
  return {
    status: errorCatalogue[code].status,
    title: code === 'NOT_FOUND' ? 'Not found' : 'Not shown',
    isTrouble: true,
    body: html`<p class="away">${code === 'NOT_FOUND' ? 'There is nothing at this address, or not any more.' : text}</p><p><a href="/ops">To the overview</a></p>`,
  };
};

const made = async (page: Page, visit: Visit, requestId: string) => {
  try {
    const found = await page.body(visit);
    const { title, content } = 'content' in found ? found : { title: page.title, content: found };
    return { status: 200, title, isTrouble: false, body: content };
  } catch (error) {
    return trouble(visit.app, requestId, error);
  }
};

/** The route of a page. */
export const opsPage = (page: Page): OpsTextRoute =>
  opsText({
    path: page.path,
    summary: `The page "${page.title}" of the console.`,
    respond: async (app, request) => {
      const { headers, caller, requestId, secure } = request;
      // A page that refreshes itself by script lets the word be for whoever opens it.
      const refreshes = headers['x-live'] !== undefined;
      const flash = refreshes ? undefined : readFlash(headers.cookie, request.path, secure);
      const [{ status, ...shown }, around] = await Promise.all([
        made(page, visitOf(app, request), requestId),
        lookAround(app),
      ]);
      const standing = standingOf(around);
      const text = render(frame(app, { ...shown, page, caller, flash, standing }));
      const zipped =
        text.length > smallest && /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
      return {
        ...{ status, type: 'text/html; charset=utf-8' },
        body: zipped ? await zip(text, { level: 3 }) : text,
        headers: {
          ...(flash ? { 'Set-Cookie': noFlashCookie(secure) } : {}),
          ...(zipped ? { 'Content-Encoding': 'gzip' } : {}),
          Vary: 'Accept-Encoding',
        },
      };
    },
  });

/** What came of a form: a sentence, if there is something to say, and the page that shows it. */
export type Outcome = { said?: string; to: string };

export type Form = {
  path: string;
  summary: string;
  /** Where the form stands: failures are told there. */
  from(visit: Visit, form: URLSearchParams): string;
  submit(visit: Visit, form: URLSearchParams): Promise<Outcome>;
};

/** The route of a form: it never ends in an error page, but where it came from, with a sentence. */
export const consoleForm = (definition: Form): OpsFormRoute =>
  opsForm({
    ...{ path: definition.path, summary: definition.summary },
    submit: async (app, { form, params, caller, requestId, secure }) => {
      const query = new URLSearchParams();
      const visit = visitOf(app, { caller, params, query, requestId });
      let flash: Flash | undefined;
      let to: string;
      try {
        const outcome = await definition.submit(visit, form);
        to = outcome.to;
        flash = outcome.said === undefined ? undefined : { tone: 'done', text: outcome.said };
      } catch (error) {
        to = definition.from(visit, form);
        const text = sentenceOf(app, requestId, error);
        flash = { tone: 'failed', text, fields: wrongFields(error) };
      }
      return { to, headers: flash ? { 'Set-Cookie': flashCookie(flash, to, secure) } : {} };
    },
  });

/** What is refused changed nothing; what broke on the way may have been done or not. */
const sentenceOf = (app: OpsApp, requestId: string, error: unknown): string => {
  const why = excuse(error);
  const refused = error instanceof ServiceError && error.cause === undefined;
  if (why !== undefined && refused) return `Nothing was changed. ${why}`;
  if (why !== undefined) return `${why} Look whether it was done before you try again.`;
  app.log.warn({ request_id: requestId, reason: describeError(error) }, 'a form was not done');
  return `Something went wrong on our side. The log has it under ${requestId}.`;
};
