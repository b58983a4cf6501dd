// Files in one piece of memory: a line of JSON that says what they are, then their bytes.
import type { File } from './render.ts';

export type Packed = Omit<File, 'gzip'> & { at: number; length: number };

/** Packs files, each compressed. */
export const packFiles = (files: readonly File[]): Buffer => {
  let at = 0;
  const heads = files.map(({ gzip, ...head }): Packed => {
    const packed = { ...head, at, length: gzip.length };
    at += gzip.length;
    return packed;
  });
  const bytes = files.map(({ gzip }) => gzip);
  return Buffer.concat([Buffer.from(`${JSON.stringify(heads)}\n`), ...bytes]);
};

/** The files in what `packFiles` made; their bytes are views of `packed`. */
export const unpackFiles = (packed: Buffer): Map<string, File> => {
  const end = packed.indexOf(10);
  const heads = JSON.parse(packed.subarray(0, end).toString()) as Packed[];
  return new Map(
    heads.map(({ at, length, ...head }) => [
      head.url,
      { ...head, gzip: packed.subarray(end + 1 + at, end + 1 + at + length) },
    ]),
  );
};
