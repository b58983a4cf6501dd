// What the image would hold, read from the Dockerfile and its ignore file without any daemon.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const root = join(import.meta.dirname, '../..');

export const readHere = (file: string): string => readFileSync(join(root, file), 'utf8');

export type Stage = { name: string; from: string; copies: Copy[]; runs: string[] };
export type Copy = { sources: string[]; to: string };

/** Instructions in order, one line each, without comments. */
const instructionsOf = (dockerfile: string): string[] =>
  dockerfile
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const toCopy = (rest: string): Copy => {
  const words = rest.split(/\s+/).filter((word) => !word.startsWith('--'));
  return { sources: words.slice(0, -1), to: words.at(-1) ?? '' };
};

/** The stages of a Dockerfile; what is copied from another stage is left out. */
export const stagesOf = (dockerfile: string): Stage[] => {
  const stages: Stage[] = [];
  for (const line of instructionsOf(dockerfile)) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    const [from = '', , name = ''] = rest.split(/\s+/);
    if (word === 'FROM') stages.push({ name, from, copies: [], runs: [] });
    if (word === 'COPY' && !rest.includes('--from=')) stages.at(-1)?.copies.push(toCopy(rest));
    if (word === 'ADD') throw new Error('ADD is not read here: use COPY');
    if (word === 'RUN' || word === 'CMD') stages.at(-1)?.runs.push(rest);
  }
  return stages;
};

/** A stage with all that it is built on. */
export const withBases = (stages: readonly Stage[], name: string): Stage[] => {
  const stage = stages.find((candidate) => candidate.name === name);
  return stage ? [...withBases(stages, stage.from), stage] : [];
};

const patternOf = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*')}(/.*)?$`);

/** Whether an ignore file keeps a path from the builder: the last pattern that fits it or a folder above it decides. */
export const isIgnored = (ignoreFile: string, path: string): boolean =>
  ignoreFile
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .reduce((ignored, line) => {
      const kept = line.startsWith('!');
      return patternOf(kept ? line.slice(1) : line).test(path) ? !kept : ignored;
    }, false);

/** All files at a path of the repository; none where there is nothing. */
export const filesAt = (path: string): string[] => {
  if (!existsSync(join(root, path))) return [];
  if (statSync(join(root, path)).isFile()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesAt(join(path, name)));
};

const placeOf = ({ sources, to }: Copy, source: string, file: string): string => {
  const into = to.endsWith('/') || sources.length > 1;
  const whole = statSync(join(root, source)).isFile() && into;
  return normalize(
    whole ? join(to, file.split('/').at(-1) ?? '') : join(to, file.slice(source.length)),
  );
};

/** Every file of ours in an image, as a path below its folder. */
export const imageFiles = (stages: readonly Stage[], ignoreFile: string): Set<string> =>
  new Set(
    stages.flatMap(({ copies }) =>
      copies.flatMap((copy) =>
        copy.sources.flatMap((source) =>
          filesAt(source)
            .filter((file) => !isIgnored(ignoreFile, file))
            .map((file) => placeOf(copy, source, file)),
        ),
      ),
    ),
  );

const relativePaths = [
  /(?:from|import) '(\.{1,2}\/[^']+)'/g,
  /import\('(\.{1,2}\/[^']+)'\)/g,
  /new URL\('(\.{1,2}\/[^']+)', import\.meta\.url\)/g,
];
const joinedPaths = /\b(?:join|joinPath|resolve)\(import\.meta\.dirname, '([^']+)'/g;
// What is imported for its types alone is gone when the file runs.
const packageNames = [
  /^(?:import (?!type )[^;']*|export [^;']*|\} )from '([^.][^']*)'/gm,
  /^import '([^.][^']*)'/gm,
  // What may be missing says what happens then.
  /import\('([^.][^']*)'\)(?!\.catch\()/g,
  /\.resolve\('([^.][^']*)'\)/g,
];

const found = (text: string, patterns: readonly RegExp[]): string[] =>
  patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''));

export type Needs = { files: Set<string>; packages: Set<string> };

const withoutTypes = (text: string): string => text.replace(/^import type [^;]*;$/gm, '');

/** Everything that the given modules load by path, they themselves included, and every package they name. */
export const needsOf = (entries: readonly string[]): Needs => {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    if (!/\.(ts|mjs)$/.test(file) || filesAt(file).length === 0) return;
    const text = withoutTypes(readHere(file));
    for (const name of found(text, packageNames)) packages.add(name);
    for (const path of found(text, [...relativePaths, joinedPaths])) {
      const target = normalize(join(dirname(file), path));
      // A folder is needed with everything in it.
      const inside = filesAt(target);
      for (const each of inside.length > 0 ? inside : [target]) visit(each);
    }
  };
  for (const entry of entries) visit(entry);
  return { files, packages };
};
