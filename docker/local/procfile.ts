// Reads the Procfile, the one list of the processes Tessera consists of.
import { readFileSync } from 'node:fs';

/** One line of the Procfile; `release` runs to its end before the others start. */
export type ProcfileLine = { name: string; args: readonly string[] };

/**
 * Parses `name: node script arguments` lines; `#` starts a comment.
 * @throws Error naming the line that is not like that.
 */
export const parseProcfile = (text: string): ProcfileLine[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', script = ''] = /^([\w-]+):\s*node\s+(.+)$/.exec(line) ?? [];
      if (name === '') throw new Error(`Procfile: "${line}" is not "name: node script".`);
      return { name, args: script.split(/\s+/) };
    });

/** Reads and splits a Procfile into the release line and the processes that stay up. */
export const readProcfile = (
  path: string,
): { release: ProcfileLine | undefined; processes: ProcfileLine[] } => {
  const lines = parseProcfile(readFileSync(path, 'utf8'));
  return {
    release: lines.find(({ name }) => name === 'release'),
    processes: lines.filter(({ name }) => name !== 'release'),
  };
};
