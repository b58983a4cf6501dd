// Which WhatsApp number sends for an account.
import type { WhatsappSender } from '../channels/whatsapp.ts';
import type { Config } from '../kernel/config.ts';

export type ResolvedSender = WhatsappSender & { shared: boolean };

/** Undefined when no number can send for the account. */
export type ResolveSender = (accountId: string) => Promise<ResolvedSender | undefined>;

/** The shared number of the settings for every account; a connected number of its own will come first. */
export const createResolveSender = (config: Config): ResolveSender => {
  const shared: ResolvedSender | undefined =
    config.whatsappPhoneNumberId && config.whatsappAccessToken
      ? {
          shared: true,
          phoneNumberId: config.whatsappPhoneNumberId,
          accessToken: config.whatsappAccessToken,
          templateName: config.whatsappTemplateName,
          templateLanguage: config.whatsappTemplateLanguage,
        }
      : undefined;
  return () => Promise.resolve(shared);
};
