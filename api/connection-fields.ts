// An own WhatsApp number as its account sees it: the schema, and the view that fills it.
import {
  brokenReasons,
  shownTemplate,
  type Template,
  templateStatuses,
} from '../lib/connections/rules.ts';
import type { FoundConnection } from '../lib/connections/store.ts';
import { wantedBy } from '../lib/connections/template.ts';
import { nullable, object, oneOf, text } from '../lib/kernel/schema.ts';
import { nullableTimestamp, timestamp } from './fields.ts';

export const templateData = () =>
  object({
    name: text().description('Name of the template.').example('otp_code'),
    language: text().description('Language of the template.').example('en_US'),
    status: oneOf(...templateStatuses).description(
      'State at the provider, as last heard. Sends need approved; not_created: there is none; unknown: nobody can tell.',
    ),
  });

export const connectionData = () =>
  object({
    status: oneOf('connected', 'broken').description(
      'broken: the provider refuses the connection; connect again, or mend it and check the template.',
    ),
    broken_at: nullableTimestamp(),
    broken_reason: nullable(oneOf(...brokenReasons)).description('Why it is broken.'),
    phone_number_id: text().description('Id of the number at the provider.'),
    waba_id: nullable(text()).description('Id of its WhatsApp Business account, if known.'),
    source: oneOf('manual', 'embedded_signup').description('How it was connected.'),
    display_name: nullable(text()).description('Name of the number.'),
    display_phone_number: nullable(text()).description('The number as the provider writes it.'),
    quality_rating: oneOf('green', 'yellow', 'red', 'unknown').description(
      'Quality at the provider, as last heard.',
    ),
    template: templateData(),
    connected_at: timestamp(),
  });

const iso = (at: number): string => new Date(at).toISOString();

export const templateView = ({ name, language, status }: Template) => ({
  ...{ name, language },
  status: templateStatuses.find((known) => known === status) ?? ('unknown' as const),
});

const ratings = ['green', 'yellow', 'red'] as const;

/** `template` is the one of the settings, for accounts that did not choose a language. */
export const connectionView = (
  connection: FoundConnection,
  template: { name: string; language: string },
) => ({
  status: connection.status,
  broken_at: connection.brokenAt === null ? null : iso(connection.brokenAt),
  broken_reason: connection.brokenReason,
  phone_number_id: connection.phoneNumberId,
  waba_id: connection.wabaId,
  source: connection.source,
  display_name: connection.displayName,
  display_phone_number: connection.displayPhoneNumber,
  quality_rating:
    ratings.find((rating) => rating === connection.qualityRating) ?? ('unknown' as const),
  template: templateView(shownTemplate(connection, wantedBy(template, connection))),
  connected_at: iso(connection.connectedAt),
});
