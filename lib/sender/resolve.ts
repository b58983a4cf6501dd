// Which WhatsApp number sends for an account: its own one when it has connected one, else the shared one.
import type { WhatsappSender } from '../channels/whatsapp.ts';
import { tokenContext } from '../connections/provider.ts';
import { chooseTemplate } from '../connections/rules.ts';
import type { ConnectionStore, FoundConnection } from '../connections/store.ts';
import { wantedBy } from '../connections/template.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { createMemory } from '../keys/memory.ts';
import type { Revocations } from '../keys/revocations.ts';

export type ResolvedSender = WhatsappSender &
  (
    | { shared: true }
    /** broken: the provider does not take the connection any more; calling with it is of no use. */
    | { shared: false; connectionId: string; broken: boolean }
  );

/** Undefined when no number can send for the account. */
export type ResolveSender = (accountId: string) => Promise<ResolvedSender | undefined>;

const rememberMs = 60_000;
const rememberedMax = 10_000;

const sharedOf = (config: Config): ResolvedSender | undefined =>
  config.whatsappPhoneNumberId && config.whatsappAccessToken
    ? {
        shared: true,
        phoneNumberId: config.whatsappPhoneNumberId,
        accessToken: config.whatsappAccessToken,
        templateName: config.whatsappTemplateName,
        templateLanguage: config.whatsappTemplateLanguage,
      }
    : undefined;

/**
 * Senders by account, remembered for a minute as long as nothing of theirs changed (see keys/revocations.ts); MySQL
 * is asked for accounts that are not remembered, once at a time each. While MySQL is away an account keeps the
 * sender it had.
 */
export const createResolveSender = (deps: {
  config: Config;
  connections: Pick<ConnectionStore, 'find'>;
  revocations: Pick<Revocations, 'epoch' | 'news'>;
  sealer: Sealer;
  clock: Clock;
}): ResolveSender => {
  const { config, connections, revocations, sealer, clock } = deps;
  const shared = sharedOf(config);
  const wanted = { name: config.whatsappTemplateName, language: config.whatsappTemplateLanguage };
  const memory = createMemory<ResolvedSender | undefined>({
    ...{ revocations, clock, most: rememberedMax },
    about: (_, accountId) => accountId,
    keepMs: () => rememberMs,
  });
  const asked = new Map<string, Promise<ResolvedSender | undefined>>();

  const ownOf = (found: FoundConnection): ResolvedSender => {
    const template = chooseTemplate(found, wantedBy(wanted, found));
    return {
      shared: false,
      connectionId: found.id,
      broken: found.status === 'broken',
      phoneNumberId: found.phoneNumberId,
      accessToken: sealer.open(found.sealedToken, tokenContext(found.id)),
      templateName: template.name,
      templateLanguage: template.language,
    };
  };

  const ask = async (accountId: string): Promise<ResolvedSender | undefined> => {
    const found = await connections.find(accountId);
    return found ? ownOf(found) : shared;
  };

  const look = async (accountId: string): Promise<ResolvedSender | undefined> => {
    const former = memory.last(accountId);
    try {
      return await memory.learn(accountId, () => ask(accountId));
    } catch (error) {
      if (former) return former.value;
      throw error;
    }
  };

  return (accountId) => {
    const known = memory.recall(accountId);
    if (known) return Promise.resolve(known.value);
    // A question of an older epoch may miss what the newer one is about.
    const key = `${accountId} ${revocations.epoch(accountId)}`;
    const running = asked.get(key);
    if (running) return running;
    const looking = look(accountId).finally(() => asked.delete(key));
    asked.set(key, looking);
    return looking;
  };
};
