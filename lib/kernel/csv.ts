// CSV as RFC 4180 writes it.

/**
 * One line, with its end. Text that a spreadsheet would take for a formula is made harmless by an apostrophe (OWASP,
 * "CSV Injection").
 */
export const csvLine = (values: readonly (string | number | null)[]): string =>
  `${values.map(cell).join(',')}\r\n`;

const cell = (value: string | number | null): string => {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const plain = /^[=+\-@\t\r]/.test(value) && !/^\+\d+$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};
