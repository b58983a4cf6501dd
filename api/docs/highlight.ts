// Colours for code: a few words per language are enough for these pages, and need no library.

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => escapes[character] ?? character);

type Rule = readonly [kind: string, pattern: string];

const string = String.raw`"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`;

const rules: Record<string, readonly Rule[]> = {
  json: [
    ['key', String.raw`"(?:[^"\\\n]|\\.)*"(?=\s*:)`],
    ['text', String.raw`"(?:[^"\\\n]|\\.)*"`],
    ['value', String.raw`\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b`],
  ],
  sh: [
    ['note', String.raw`(?:^|\s)#[^\n]*`],
    ['value', String.raw`\$\w+`],
    ['text', string],
    ['word', String.raw`\b(?:curl|export|npm|sed|docker|node)\b`],
    ['key', String.raw`(?<=\s)--?[A-Za-z][\w-]*`],
  ],
  js: [
    ['note', String.raw`//[^\n]*`],
    ['text', string],
    [
      'word',
      String.raw`\b(?:import|from|const|new|async|await|try|catch|if|throw|return|function)\b`,
    ],
    ['value', String.raw`\b\d+\b|\btrue\b|\bfalse\b`],
  ],
  http: [
    ['word', String.raw`^(?:GET|POST|PATCH|DELETE)\b`],
    ['value', String.raw`\{\w+\}`],
    ['key', String.raw`^[\w-]+(?=:)`],
  ],
};

const patterns = new Map(
  Object.entries(rules).map(([language, list]) => [
    language,
    {
      kinds: list.map(([kind]) => kind),
      pattern: new RegExp(list.map(([, source]) => `(${source})`).join('|'), 'gm'),
    },
  ]),
);

/** `source` as HTML with a span around what has a colour; other languages are only escaped. */
export const highlight = (source: string, language: string): string => {
  const known = patterns.get(language);
  if (!known) return escapeHtml(source);
  let html = '';
  let from = 0;
  for (const match of source.matchAll(known.pattern)) {
    const kind = known.kinds[match.slice(1).findIndex((group) => group !== undefined)] ?? '';
    html += `${escapeHtml(source.slice(from, match.index))}<span class="t-${kind}">${escapeHtml(match[0])}</span>`;
    from = match.index + match[0].length;
  }
  return html + escapeHtml(source.slice(from));
};
