// The files pages need, packed once when first asked for; their addresses change with their content.
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
const styles = ['base', 'frame', 'content', 'forms', 'plots', 'phone'];

const files = {
  'console.css': { of: styles.map((name) => join(own, `${name}.css`)), type: css },
  'console.js': { of: [join(own, 'console.js')], type: js },
  'uplot.css': { of: [join(uplot, 'dist/uPlot.min.css')], type: css },
  'uplot.js': { of: [join(uplot, 'dist/uPlot.iife.min.js')], type: js },
} as const;

export type AssetName = keyof typeof files;
export const assetNames = Object.keys(files) as AssetName[];

const packed = new Map<AssetName, { plain: Buffer; zipped: Buffer; hash: string }>();

const pack = (name: AssetName) => {
  const known = packed.get(name);
  if (known) return known;
  const plain = Buffer.concat(files[name].of.map((file) => readFileSync(file)));
  const hash = createHash('sha256').update(plain).digest('hex').slice(0, 12);
  const made = { plain, zipped: gzipSync(plain, { level: 9 }), hash };
  packed.set(name, made);
  return made;
};

/** The address of a file as it is now. */
export const asset = (name: AssetName): string => `/ops/assets/${pack(name).hash}/${name}`;

const isAsset = (name: string | undefined): name is AssetName =>
  name !== undefined && Object.hasOwn(files, name);

export const assetRoute = opsText({
  path: '/ops/assets/{hash}/{name}',
  summary: 'A style sheet or script of the console.',
  respond: async (_, { params, headers }) => {
    const { name } = params;
    if (!isAsset(name)) throw fail('NOT_FOUND');
    const { plain, zipped } = pack(name);
    const zips = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''));
    return {
      type: files[name].type,
      body: zips ? zipped : plain,
      headers: {
        ...(zips ? { 'Content-Encoding': 'gzip' } : {}),
        'Cache-Control': 'private, max-age=31536000, immutable',
        Vary: 'Accept-Encoding',
      },
    };
  },
});
