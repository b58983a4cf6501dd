// The template of an own number: asking for its state, and creating it.
import { GraphFailure } from '../channels/whatsapp-management.ts';
import type { EventWire } from '../jobs.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import { asking, type ConnectionDeps, tokenContext } from './provider.ts';
import {
  type BrokenReason,
  brokenReasonOf,
  shownTemplate,
  type Template,
  templateStatusOf,
  type WantedTemplate,
} from './rules.ts';
import type { FoundConnection } from './store.ts';
import type { Noted } from './template-store.ts';

/** The template an account wants: the name of the settings in its own language. */
export const wantedBy = (
  template: WantedTemplate,
  { accountLanguage }: Pick<FoundConnection, 'accountLanguage'>,
): WantedTemplate => ({ name: template.name, language: accountLanguage ?? template.language });

const provenByListing: readonly BrokenReason[] = ['token_invalid', 'permission_missing'];

type Managed = FoundConnection & { wabaId: string };

/** @throws NOT_FOUND without a connection, VALIDATION_ERROR when its business account is not known */
const manageable = async (deps: ConnectionDeps, accountId: string): Promise<Managed> => {
  const found = await deps.connections.find(accountId);
  if (!found) throw fail('NOT_FOUND', {}, { message: 'No WhatsApp number is connected.' });
  const { wabaId } = found;
  if (wabaId !== null) return { ...found, wabaId };
  throw invalid({ field: 'waba_id', issue: 'is not known: connect the number again with it' });
};

/** A refusal of the stored token is news about the connection too. */
const asConnection = async <T>(
  deps: ConnectionDeps,
  { id, accountId }: Managed,
  work: () => Promise<T>,
): Promise<T> => {
  const noting = async (): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const { code = null } = error instanceof GraphFailure ? error.refusal : {};
      const reason = code === 0 || code === 190 ? brokenReasonOf(code) : undefined;
      if (reason && (await deps.connections.markBroken(id, reason, deps.clock.now()))) {
        await deps.revocations.announce(accountId);
      }
      throw error;
    }
  };
  return asking(deps, 'access_token', noting);
};

const statusIn = (
  templates: readonly Template[],
  { wabaId }: Pick<FoundConnection, 'wabaId'>,
  wanted: WantedTemplate,
): string => shownTemplate({ templates: [...templates], wabaId }, wanted).status;

/** The event that a template has another state than it had in `before`. */
export const templateEvent = (
  connection: Pick<FoundConnection, 'id' | 'accountId' | 'wabaId'>,
  given: { template: Template; before: readonly Template[]; at: number; requestId: string },
): EventWire => {
  const { template, before, at, requestId } = given;
  const { name, language, status } = template;
  return accountEvent('template.status_changed', {
    ...{ accountId: connection.accountId, mode: 'live', at, requestId },
    subject: [connection.id, name, language, status, at].join(' '),
    data: { name, language, status, previous_status: statusIn(before, connection, template) },
  });
};

/** What is stored of an answer: what was learnt while the provider was asked is newer than it. */
const judge =
  (connection: Managed, answered: readonly Template[], about: { at: number; requestId: string }) =>
  (present: readonly Template[]): Noted => {
    const statusNow = (one: Template) => statusIn(present, connection, one);
    const templates = answered.map((one) => {
      const status = statusNow(one);
      const isAsBefore = status === statusIn(connection.templates, connection, one);
      return isAsBefore ? one : { ...one, status };
    });
    const told = templates
      .filter((one) => statusNow(one) !== one.status)
      .map((template) => templateEvent(connection, { template, before: present, ...about }));
    return { templates, told };
  };

/**
 * Stores what the provider answered and tells what changed by it; answers the templates as they are now. A list of
 * templates proves the token and its rights, so it heals a connection that was broken for want of them; it proves
 * nothing of the number, or of a ban.
 */
const note = async (
  deps: ConnectionDeps,
  connection: Managed,
  answered: readonly Template[],
  requestId: string,
): Promise<readonly Template[]> => {
  const at = deps.clock.now();
  const decide = judge(connection, answered, { at, requestId });
  const noted = await deps.connections.noteTemplates(connection.id, { now: at, decide });
  if (noted === undefined) {
    throw fail('NOT_FOUND', {}, { message: 'The WhatsApp number was disconnected meanwhile.' });
  }
  await deps.connections.heal(connection.id, provenByListing);
  await deps.revocations.announce(connection.accountId);
  await tellNews(deps, noted.told);
  return noted.templates;
};

/** All languages of the template, and the wanted one also when there is none. */
const look = async (
  deps: ConnectionDeps,
  connection: Managed,
  token: string,
  wanted: WantedTemplate,
): Promise<Template[]> => {
  const listed = await deps.management.listTemplates(token, connection.wabaId, wanted.name);
  const found = listed.map((one) => ({ ...one, status: templateStatusOf(one.status) }));
  const gone = connection.templates.filter(
    ({ name, language }) => name === wanted.name && !found.some((one) => one.language === language),
  );
  const missing = [...gone, wanted].map(({ name, language }) => ({ name, language }));
  const unique = new Map(missing.map((one) => [one.language, { ...one, status: 'not_created' }]));
  for (const { language } of found) unique.delete(language);
  return [...found, ...unique.values()];
};

const pick = (templates: readonly Template[], { language }: WantedTemplate): Template | undefined =>
  templates.find((one) => one.language === language);

const exists = new Set([2388023, 2388024]);

const isThere = (error: unknown): boolean =>
  error instanceof GraphFailure &&
  (exists.has(error.refusal.subcode ?? 0) || exists.has(error.refusal.code ?? 0));

type Asked = { accountId: string; requestId: string };

const open = async (deps: ConnectionDeps, accountId: string) => {
  const connection = await manageable(deps, accountId);
  return {
    connection,
    token: deps.sealer.open(connection.sealedToken, tokenContext(connection.id)),
    wanted: wantedBy(deps.template, connection),
  };
};

/**
 * Asks the provider for the state of the account's template and keeps it.
 * @throws NOT_FOUND, VALIDATION_ERROR, SERVICE_UNAVAILABLE
 */
export const checkTemplate = async (deps: ConnectionDeps, asked: Asked): Promise<Template> => {
  const { connection, token, wanted } = await open(deps, asked.accountId);
  const found = await asConnection(deps, connection, () => look(deps, connection, token, wanted));
  const templates = await note(deps, connection, found, asked.requestId);
  return pick(templates, wanted) ?? { ...wanted, status: 'not_created' };
};

/**
 * Creates the account's template, or adopts the one that is there already. Repeatable.
 * @throws NOT_FOUND, VALIDATION_ERROR, SERVICE_UNAVAILABLE
 */
export const createTemplate = async (deps: ConnectionDeps, asked: Asked): Promise<Template> => {
  const { connection, token, wanted } = await open(deps, asked.accountId);
  const create = async (): Promise<Template> => {
    const { ttlSeconds } = deps.template;
    const made = { ...wanted, ttlSeconds };
    const status = await deps.management.createTemplate(token, connection.wabaId, made);
    return { ...wanted, status: templateStatusOf(status) };
  };
  const found = await asConnection(deps, connection, async () => {
    const before = await look(deps, connection, token, wanted);
    if (pick(before, wanted)?.status !== 'not_created') return before;
    const others = before.filter(({ language }) => language !== wanted.language);
    try {
      return [...others, await create()];
    } catch (error) {
      // Somebody was faster: theirs is as good.
      if (isThere(error)) return look(deps, connection, token, wanted);
      throw error;
    }
  });
  const templates = await note(deps, connection, found, asked.requestId);
  return pick(templates, wanted) ?? { ...wanted, status: 'unknown' };
};
