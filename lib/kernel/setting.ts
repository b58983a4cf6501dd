// What a setting is, and the forms that settings have.
import Joi from 'joi';
import { fromUsd } from './money.ts';
import { MysqlAddressError, parseMysqlAddress } from './mysql-address.ts';
import { integer, type Schema, text } from './schema.ts';
import type { NamedKey } from './secrets.ts';

export type Setting<T> = {
  env: string;
  schema: Schema<T>;
  about: string;
  /** Never printed. */
  secret: boolean;
};

/** A setting that may be shown. */
export const setting = <T>(env: string, schema: Schema<T>, about: string): Setting<T> => ({
  env,
  schema,
  about,
  secret: false,
});

/** A setting that must not be shown. */
export const secret = <T>(env: string, schema: Schema<T>, about: string): Setting<T> => ({
  env,
  schema,
  about,
  secret: true,
});

/** One address or several after commas; `example` is how people read the scheme. */
export const urls = (scheme: RegExp, example: string) =>
  text().pattern(
    new RegExp(`^(${scheme.source})://[^\\s,]+(,(${scheme.source})://[^\\s,]+)*,?$`),
    `one address or a comma list (${example})`,
  );

/** The address of a MySQL server. */
export const mysqlUrl = () =>
  text()
    .custom((value: string, helpers) => {
      try {
        parseMysqlAddress(value);
        return value;
      } catch (error) {
        if (!(error instanceof MysqlAddressError)) throw error;
        return helpers.error('mysql.address', { problem: error.message });
      }
    })
    .messages({ 'mysql.address': '{{#problem}}' });

/** None, one or several of `item` with commas between them. */
export const commaList = ({ source }: RegExp) =>
  text()
    .pattern(new RegExp(`^${source}(,${source})*$`))
    .max(20_000)
    .allow('')
    .default('');

const keyBytes = 32;

const parseKeys = (value: string): NamedKey[] =>
  value.split(',').map((part) => {
    const [id = '', encoded = ''] = part.split(':');
    return { id, key: Buffer.from(encoded, 'base64') };
  });

/** "id:base64" pairs, newest first: the first is used for new things, all of them for old ones. */
export const namedKeys = (): Schema<NamedKey[]> & Joi.StringSchema =>
  Joi.string().custom((value: string, helpers) => {
    const keys = parseKeys(value);
    const sound = keys.every(
      ({ id, key }) => /^[a-z0-9]{1,8}$/.test(id) && key.length === keyBytes,
    );
    return sound
      ? keys
      : helpers.message({ custom: 'must be id:base64 of 32 bytes, or several after commas' });
  }) as unknown as Schema<NamedKey[]> & Joi.StringSchema;

/** A whole number of milliseconds within bounds. */
export const milliseconds = (min: number, max: number, standard: number) =>
  integer().min(min).max(max).default(standard);

/** The address of somebody else's API. */
export const baseUrl = (standard: string) =>
  text()
    .uri({ scheme: ['http', 'https'] })
    .default(standard);

/** An amount in USD with at most six decimals, read into micro-USD. */
export const usd = (standard: number, most = 1_000): Schema<number> =>
  Joi.number()
    .min(0)
    .max(most)
    .custom((value: number) => fromUsd(value))
    // A default is taken as it is.
    .default(fromUsd(standard))
    .prefs({ convert: true }) as Schema<number>;
