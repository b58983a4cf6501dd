// Tables for a terminal: columns as wide as what is in them, numbers to the right.

export type Cell = string | number | boolean | null | undefined;

/** A line stays a line, and a name that a customer chose cannot move the cursor or paint over the table. */
export const plain = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Cf}]/gu, '\u{FFFD}');

const shown = (cell: Cell): string => {
  if (cell === null || cell === undefined) return '-';
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return plain(String(cell));
};

/** Rows under their titles; a column of numbers alone stands to the right. */
export const table = (titles: readonly string[], rows: readonly (readonly Cell[])[]): string => {
  if (rows.length === 0) return 'nothing\n';
  const texts = [titles, ...rows.map((row) => row.map(shown))];
  const widths = titles.map((_, n) => Math.max(...texts.map((row) => (row[n] ?? '').length)));
  const right = titles.map((_, n) =>
    rows.every((row) => typeof row[n] === 'number' || row[n] === null),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((text, n) => (right[n] ? text.padStart(widths[n] ?? 0) : text.padEnd(widths[n] ?? 0)))
      .join('  ')
      .trimEnd();
  return `${texts.map(line).join('\n')}\n`;
};

/** Titles and what belongs to them, one under the other. */
export const facts = (pairs: readonly (readonly [string, Cell])[]): string => {
  const width = Math.max(...pairs.map(([title]) => title.length));
  return `${pairs.map(([title, cell]) => `${title.padEnd(width)}  ${shown(cell)}`).join('\n')}\n`;
};

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** A span in its largest unit: 90 s is 1.5m. */
export const span = (ms: number | null | undefined): string => {
  if (ms === null || ms === undefined) return '-';
  const [name, size] = units.find(([, one]) => ms >= one) ?? ['ms', 1];
  const count = ms / size;
  return `${count >= 10 || Number.isInteger(count) ? Math.round(count) : count.toFixed(1)}${name}`;
};
