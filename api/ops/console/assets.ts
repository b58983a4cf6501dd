// The files pages need, packed once when first asked for; their address changes when any of them does.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { fail } from '../../../lib/kernel/errors.ts';
import { opsText } from '../route.ts';

const own = join(import.meta.dirname, 'assets');
const uplot = dirname(fileURLToPath(import.meta.resolve('uplot/package.json')));

const css = 'text/css; charset=utf-8';
const js = 'text/javascript; charset=utf-8';
const styles = ['base', 'frame', 'content', 'forms', 'dialogs', 'plots', 'phone'];

const scripts = ['console', 'lay', 'live', 'forms', 'dialogs', 'plots'] as const;

type File = { of: readonly string[]; type: string };

const files: Readonly<Record<string, File>> = {
  'console.css': { of: styles.map((name) => join(own, `${name}.css`)), type: css },
  'uplot.css': { of: [join(uplot, 'dist/uPlot.min.css')], type: css },
  'uplot.js': { of: [join(uplot, 'dist/uPlot.iife.min.js')], type: js },
  ...Object.fromEntries(
    scripts.map((name) => [`${name}.js`, { of: [join(own, `${name}.js`)], type: js }]),
  ),
};

type Packed = { type: string; plain: Buffer; zipped: Buffer };

const packAll = () => {
  const packed = new Map<string, Packed>();
  const hash = createHash('sha256');
  for (const [name, { of, type }] of Object.entries(files)) {
    const plain = Buffer.concat(of.map((file) => readFileSync(file)));
    hash.update(plain);
    packed.set(name, { type, plain, zipped: gzipSync(plain, { level: 9 }) });
  }
  return { packed, hash: hash.digest('hex').slice(0, 12) };
};

let all: ReturnType<typeof packAll> | undefined;
const pack = () => {
  all ??= packAll();
  return all;
};

/** The address of a file as it is now; scripts name each other beside themselves. */
export const asset = (name: string): string => `/ops/assets/${pack().hash}/${name}`;

/** The scripts that the first one asks for: a page names them, so that they come at once. */
export const laterScripts = (): string[] =>
  scripts.filter((name) => name !== 'console').map((name) => asset(`${name}.js`));

export const assetRoute = opsText({
  path: '/ops/assets/{hash}/{name}',
  summary: 'A style sheet or script of the console.',
  respond: async (_, { params, headers }) => {
    const file = pack().packed.get(params.name ?? '');
    if (!file) throw fail('NOT_FOUND');
    const { type, plain, zipped } = file;
    // Under the name of another version it is not kept: the files of that version may come back.
    const kept = params.hash === pack().hash;
    const zips = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
    return {
      type,
      body: zips ? zipped : plain,
      headers: {
        ...(zips ? { 'Content-Encoding': 'gzip' } : {}),
        'Cache-Control': kept ? 'private, max-age=31536000, immutable' : 'no-store',
        Vary: 'Accept-Encoding',
      },
    };
  },
});
