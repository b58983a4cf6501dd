// The Security page says what is so: every requirement once, every test it names, every package pinned.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dictionary } from '@zxcvbn-ts/language-common';
import test from 'ava';
import { verdictsIn } from '../../api/docs/asvs.ts';
import { markdownAt } from './facts.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = markdownAt('security');

/** Numbers of the requirements of Levels 1 and 2 in each section of ASVS 5.0.0. */
const requirements: Record<string, string> = {
  '1.1': '1-2',
  '1.2': '1-9',
  '1.3': '1-11',
  '1.4': '1-3',
  '1.5': '1-2',
  '2.1': '1-3',
  '2.2': '1-3',
  '2.3': '1-4',
  '2.4': '1',
  '3.2': '1-2',
  '3.3': '1-4',
  '3.4': '1-6',
  '3.5': '1-5',
  '3.7': '1-2',
  '4.1': '1-3',
  '4.2': '1',
  '4.3': '1-2',
  '4.4': '1-4',
  '5.1': '1',
  '5.2': '1-3',
  '5.3': '1-2',
  '5.4': '1-3',
  '6.1': '1-3',
  '6.2': '1-12',
  '6.3': '1-4',
  '6.4': '1-4',
  '6.5': '1-5',
  '6.6': '1-3',
  '6.8': '1-4',
  '7.1': '1-3',
  '7.2': '1-4',
  '7.3': '1-2',
  '7.4': '1-5',
  '7.5': '1-2',
  '7.6': '1-2',
  '8.1': '1-2',
  '8.2': '1-3',
  '8.3': '1',
  '8.4': '1',
  '9.1': '1-3',
  '9.2': '1-4',
  '10.1': '1-2',
  '10.2': '1-2',
  '10.3': '1-4',
  '10.4': '1-11',
  '10.5': '1-5',
  '10.6': '1-2',
  '10.7': '1-3',
  '11.1': '1-2',
  '11.2': '1-3',
  '11.3': '1-3',
  '11.4': '1-4',
  '11.5': '1',
  '11.6': '1',
  '12.1': '1-3',
  '12.2': '1-2',
  '12.3': '1-4',
  '13.1': '1',
  '13.2': '1-5',
  '13.3': '1-2',
  '13.4': '1-5',
  '14.1': '1-2',
  '14.2': '1-4',
  '14.3': '1-3',
  '15.1': '1-3',
  '15.2': '1-3',
  '15.3': '1-7',
  '16.1': '1',
  '16.2': '1-5',
  '16.3': '1-4',
  '16.4': '1-3',
  '16.5': '1-3',
  '17.1': '1',
  '17.2': '1-4',
  '17.3': '1-2',
};

const expand = (ranges: string): number[] =>
  ranges.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });

test('each requirement of ASVS 5.0 Levels 1 and 2 is in the table once', (t) => {
  const wanted = Object.entries(requirements).flatMap(([section, ranges]) =>
    expand(ranges).map((number) => `${section}.${number}`),
  );
  t.is(wanted.length, 253);
  const found = verdictsIn(page).map(({ requirement }) => requirement);
  t.deepEqual(found.toSorted(), wanted.toSorted());
});

test('only what the contract leaves to the owner, or a later release brings, is not met', (t) => {
  const open = verdictsIn(page).filter(({ verdict }) => verdict === 'Not met');
  t.deepEqual(
    open.map(({ requirement }) => requirement),
    ['6.3.3', '7.2.4'],
  );
});

/** Titles of a test file; a part that is filled in may be anything. */
const titlesIn = (path: string): RegExp[] =>
  [...read(path).matchAll(/'((?:[^'\\\n]|\\.)+)'|`([^`\n]+)`/g)].map(([, plain, template]) => {
    const text = plain?.replace(/\\(.)/g, '$1') ?? template ?? '';
    const parts = text
      .split(/\$\{[^}]*\}/)
      .map((part) => part.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
    return new RegExp(`^${parts.join('.+')}$`);
  });

test('every test that the page names exists', (t) => {
  const cited = [...page.matchAll(/`(test\/[\w./-]+\.test\.ts)`(?: › \*([^*]+)\*)?/g)];
  t.true(cited.length > 100);
  const titles = new Map<string, RegExp[]>();
  for (const [, path = '', title] of cited) {
    t.true(existsSync(join(root, path)), path);
    if (!titles.has(path)) titles.set(path, titlesIn(path));
    const plain = title?.replaceAll('\\|', '|') ?? '';
    t.true(
      titles.get(path)?.some((each) => each.test(plain)),
      `${path} › ${plain}`,
    );
  }
});

test('the page tells how many passwords are refused', (t) => {
  const leaked = dictionary['passwords-common'].filter((password) => password.length >= 8);
  t.true(page.includes(`the ${leaked.length.toLocaleString('en-US')} passwords of 8 characters`));
});

test('every row that is met names a test, a part of this page, or what makes it so', (t) => {
  const rows = page.split('\n').filter((line) => /^\| [\d., ]+ \| /.test(line));
  for (const line of rows) t.regex(line, /\| [^|]{15,}/, line);
});

test('every package is pinned to a version and a hash, from the one registry', (t) => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<
    'dependencies' | 'devDependencies',
    Record<string, string>
  >;
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    t.regex(version, /^\d+\.\d+\.\d+$/, name);
  }
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { resolved?: string; integrity?: string; inBundle?: boolean }>;
  };
  for (const [path, { resolved, integrity, inBundle }] of Object.entries(packages)) {
    if (path === '' || inBundle) continue;
    t.regex(integrity ?? '', /^sha512-/, path);
    t.regex(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);
  }
});
