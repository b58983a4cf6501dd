// Joi fields that several operations of the ops listener share.
import { jobs } from '../../lib/jobs.ts';
import { integer, object, oneOf, optional, text, withDefault } from '../../lib/kernel/schema.ts';

const jobNames = jobs.map(({ name }) => name);

export const jobParams = object({ job: oneOf(...jobNames) });
export const idParams = object({ id: text().guid() });
export const pageQuery = {
  limit: withDefault(integer().min(1).max(200), 50),
  before: optional(text().guid()),
};

export const isoOrNull = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined ? null : new Date(ms).toISOString();
