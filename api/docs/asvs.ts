// The table of the Security page that sums up the tables below it: how many requirements of each chapter are met.
import { table } from './page.ts';

const row = /^\| ([\d., ]+) \| (Met|Does not apply|Not met) \|/gm;

export type Verdict = 'Met' | 'Does not apply' | 'Not met';

/** Each requirement of the tables in `markdown`, with its verdict, in their order. */
export const verdictsIn = (markdown: string): { requirement: string; verdict: Verdict }[] =>
  [...markdown.matchAll(row)].flatMap(([, requirements = '', verdict]) =>
    requirements.split(', ').map((requirement) => ({ requirement, verdict: verdict as Verdict })),
  );

/** How many requirements of each chapter are met, do not apply, or are not met. */
export const overviewRows = (markdown: string): string => {
  const verdicts = verdictsIn(markdown);
  const titles = [...markdown.matchAll(/^### V(\d+) (.+)$/gm)];
  const rows = titles.map(([, chapter = '', title = '']) => {
    const count = (wanted: Verdict): string =>
      String(
        verdicts.filter(
          ({ requirement, verdict }) => requirement.startsWith(`${chapter}.`) && verdict === wanted,
        ).length,
      );
    return [`V${chapter} ${title}`, count('Met'), count('Does not apply'), count('Not met')];
  });
  return table(['Chapter', 'Met', 'Does not apply', 'Not met'], rows);
};
