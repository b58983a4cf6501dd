// Prometheus's own checker: found on this machine, or undefined, and then its tests are left out.
import { spawnSync } from 'node:child_process';
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
