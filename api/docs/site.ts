// The documentation as this process serves it: made by another process when first asked for, kept compressed.
import { spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import type { ApiApp } from '../../lib/app.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { redact } from '../../lib/kernel/redact.ts';
import { unpackFiles } from './pack.ts';
import type { Facts } from './page.ts';
import type { File } from './render.ts';

const builder = join(import.meta.dirname, 'build.ts');
const buildWithinMs = 30_000;
const retrySeconds = 5;

export type Site = {
  /**
   * The file at a path, or the page that says there is none.
   * @throws SERVICE_UNAVAILABLE when it cannot be made
   */
  find(path: string): Promise<{ status: 200 | 404; file: File }>;
};

/** Runs the builder. Its environment has none of our settings: it needs no secret. */
const build = async (facts: Facts): Promise<Map<string, File>> => {
  const cache = getCompileCacheDir();
  // The cache counts for one set of V8's flags, so they are ours.
  const flags = process.execArgv.filter((flag) => flag.startsWith('--max-'));
  const child = spawn(process.execPath, [...flags, builder], {
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    signal: AbortSignal.timeout(buildWithinMs),
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(facts));
  const [code, packed, said] = await Promise.all([ended, buffer(child.stdout), text(child.stderr)]);
  if (code !== 0) throw new Error(`the documentation was not made: ${redact(said).slice(0, 500)}`);
  return unpackFiles(packed);
};

const missing = '/docs/404';

/** A site over `facts`, which are asked for once. */
export const createSite = (facts: () => Facts, make = build): Site => {
  let files: Promise<Map<string, File>> | undefined;

  const made = async (): Promise<Map<string, File>> => {
    try {
      files ??= make(facts());
      return await files;
    } catch (error) {
      files = undefined;
      throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }, { cause: error });
    }
  };

  return {
    find: async (path) => {
      const all = await made();
      const file = all.get(path.replace(/(.)\/+$/, '$1'));
      if (file && file.url !== missing) return { status: 200, file };
      const page = all.get(missing);
      if (!page) throw new Error('the documentation has no page for unknown addresses');
      return { status: 404, file: page };
    },
  };
};

/** What the pages say of this installation. */
export const factsOf = (
  { config, version }: Pick<ApiApp, 'config' | 'version'>,
  openapi: Record<string, unknown>,
): Facts => ({
  ...{ openapi, version },
  playground: config.playground,
  turnstileSiteKey: config.turnstileSecret === '' ? '' : config.turnstileSiteKey,
  turnstileBaseUrl: config.turnstileBaseUrl,
  trialVerifications: config.trialVerifications,
  sharedGrant: { unverified: config.sharedUnverified, perVerified: config.sharedPerVerified },
  exposure: {
    trialMicros: config.exposureTrialMicros,
    paidMicros: config.exposureMicros,
    timesCharged: config.exposureTimesCharged,
  },
  priceMicros: config.priceMicros,
  sharedHourly: config.sharedHourly,
  floorMinimumDaily: config.floorMinimumDaily,
});
