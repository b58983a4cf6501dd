// The second net for secrets: masks whatever looks like one in free text (the first is to log only named fields).

const patterns: readonly [RegExp, string][] = [
  [/\bsk_(live|test)_[A-Za-z0-9_]+/g, 'sk_$1_***'],
  [/\b(sess|rt|mfa|whsec)_[A-Za-z0-9_+/=-]+/g, '$1_***'],
  [/\bbearer\s+[^\s"',]+/gi, 'Bearer ***'],
  [/\/bot\d+:[A-Za-z0-9_-]+/g, '/bot***'],
  [/:\/\/[^\s/@]+@/g, '://***@'],
  [/\bEAA[A-Za-z0-9]{16,}/g, 'EAA***'],
  // Codes and phone numbers: any run of six digits or more, with or without a plus.
  [/\+?\d{6,}/g, '***'],
];

/** Returns `text` with keys, tokens, passwords in URLs, codes and phone numbers masked. */
export const redact = (text: string): string =>
  patterns.reduce((masked, [pattern, mask]) => masked.replace(pattern, mask), text);

const maxErrorLength = 300;

/** One line about `error` that is safe to log or to put into a queue header (at most 300 characters). */
export const describeError = (error: unknown): string => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return redact(text).replace(/\s+/g, ' ').slice(0, maxErrorLength);
};
