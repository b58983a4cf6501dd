// What the provider says by itself about own numbers: their templates, their quality, their business account.
import { GraphFailure, isLanguage } from '../channels/whatsapp-management.ts';
import type { WhatsappNews } from '../jobs.ts';
import { newId } from '../kernel/ids.ts';
import { tellNews } from '../messages/news.ts';
import { type ConnectionDeps, tokenContext } from './provider.ts';
import { accountEffect, qualityOf, templateStatusOf } from './rules.ts';
import type { FoundConnection } from './store.ts';
import { templateEvent } from './template.ts';

/** Meta's webhook writes a hyphen where its templates have an underscore. */
const languageOf = (text: string): string => text.replace('-', '_');

const onTemplate = async (
  deps: ConnectionDeps,
  connection: FoundConnection,
  news: WhatsappNews,
): Promise<void> => {
  if (news.template === null) return;
  const { name } = news.template;
  const language = languageOf(news.template.language);
  // Other templates of the business are nobody's business here.
  if (name !== deps.template.name || !isLanguage(language)) return;
  const status = templateStatusOf(news.event);
  const { at } = news;
  const template = { name, language, status };
  const told = await deps.connections.takeNews(connection.id, { ...template, at }, (before) => [
    templateEvent(connection, { template, before, at, requestId: newId() }),
  ]);
  if (told.length === 0) return;
  await deps.revocations.announce(connection.accountId);
  await tellNews(deps, told);
};

/** The webhook tells that something about the number changed; what it is now is read back. */
const onNumber = async (deps: ConnectionDeps, connection: FoundConnection): Promise<void> => {
  const { id, phoneNumberId, sealedToken } = connection;
  const token = deps.sealer.open(sealedToken, tokenContext(id));
  try {
    const { displayPhoneNumber, qualityRating } = await deps.management.readNumber(
      token,
      phoneNumberId,
    );
    await deps.connections.updateNumber(id, {
      displayPhoneNumber,
      qualityRating: qualityOf(qualityRating),
    });
  } catch (error) {
    // A refusal will not become an answer by asking again; the next send finds out what is wrong.
    if (!(error instanceof GraphFailure) || error.refusal.code === null) throw error;
  }
};

const onAccount = async (
  deps: ConnectionDeps,
  { id, accountId }: FoundConnection,
  news: WhatsappNews,
): Promise<void> => {
  const effect = accountEffect(news.event, news.ban_state);
  if (effect === undefined) return;
  const times = { at: news.at, now: deps.clock.now() };
  if (!(await deps.connections.takeAccountNews(id, effect, times))) return;
  deps.log.warn({ connection: id, event: news.event }, 'connection changed state');
  await deps.revocations.announce(accountId);
};

const handleOne = async (deps: ConnectionDeps, news: WhatsappNews): Promise<void> => {
  const on = { template: onTemplate, number: onNumber, account: onAccount }[news.kind];
  for (const connection of await deps.connections.ofBusiness(news.waba_id)) {
    await on(deps, connection, news);
  }
};

/** Handles the news of one webhook call, in its order. Repeatable; errors it throws take the retry ladder. */
export const handleNews = async (
  deps: ConnectionDeps,
  news: readonly WhatsappNews[],
): Promise<void> => {
  for (const one of news) await handleOne(deps, one);
};
