// Prometheus's own checker: found on this machine, or undefined, and then its tests are left out.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPrograms } from '../../docker/local/packages.ts';

/** Path of promtool. */
export const promtoolPath = (): string | undefined =>
  Object.values(findPrograms('promtool') ?? {})[0];

const run = (args: readonly string[], input = '') => {
  const path = promtoolPath();
  if (path === undefined) throw new Error('promtool is not installed.');
  return spawnSync(path, args, { input, encoding: 'utf8' });
};

/** What `promtool test rules` has to say about a file of tests; '' when they pass. */
export const promtoolTests = (file: string): string => {
  const { status, stdout, stderr } = run(['test', 'rules', file]);
  return status === 0 ? '' : `${stdout}${stderr}`;
};

/** What `promtool check …` has to say against `input` or the files named in `args`; '' when nothing. */
export const promtoolSays = (args: readonly string[], input = ''): string => {
  const { status, stdout, stderr } = run(['check', ...args], input);
  // For metrics anything it prints is a complaint; for files it also prints what it found.
  if (status === 0 && args[0] !== 'metrics') return '';
  return `${stdout}${stderr}` || (status === 0 ? '' : `it ended with ${status}`);
};

/** Hands `content` to `look` as a file; promtool reads JSON as the YAML it is. */
export const asFile = <T>(content: unknown, look: (file: string) => T): T => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-'));
  try {
    const file = join(folder, 'promtool.json');
    writeFileSync(file, JSON.stringify(content));
    return look(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
};
