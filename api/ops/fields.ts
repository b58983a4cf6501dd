// Joi fields that several operations of the ops listener share.
import { isSupportedCountry } from 'libphonenumber-js/max';
import { jobs } from '../../lib/jobs.ts';
import {
  decimal,
  integer,
  object,
  oneOf,
  optional,
  text,
  withDefault,
} from '../../lib/kernel/schema.ts';

const jobNames = jobs.map(({ name }) => name);

/** The id of something, as all lists show it. */
export const idText = () =>
  text().guid().messages({ 'string.guid': 'must be an id (8-4-4-4-12 hexadecimal digits)' });

export const jobParams = object({ job: oneOf(...jobNames) });
export const idParams = object({ id: idText() });
export const pageQuery = {
  limit: withDefault(integer().min(1).max(200), 50),
  before: optional(idText()),
};

export const isoOrNull = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined ? null : new Date(ms).toISOString();

const amountMost = 10_000_000;
const isExact = (amount: number): boolean => Math.round(amount * 1e6) / 1e6 === amount;

/** USD with at most six decimals, as the ledger keeps it. */
export const usd = () =>
  decimal()
    .min(-amountMost)
    .max(amountMost)
    .custom((value: number, helpers) => (isExact(value) ? value : helpers.error('number.exact')))
    .messages({ 'number.exact': 'must have at most six decimals' });

/** A country that has telephones; two letters that are none (UK) would set a price that nobody ever pays. */
export const country = () =>
  text()
    .custom((value: string, helpers) =>
      isSupportedCountry(value) ? value : helpers.error('country.known'),
    )
    .messages({ 'country.known': 'must be two capital letters of ISO 3166 (GB, not UK)' });
