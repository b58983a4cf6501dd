// Plain text: what people read as it stands, in any script, without characters that hide or turn it round.
import test from 'ava';
import fc from 'fast-check';
import { plainLine, plainLines } from '../../lib/kernel/plain-text.ts';

const issueOf = (schema: ReturnType<typeof plainLine>, value: string): string | undefined =>
  schema.validate(value, { errors: { label: false } }).error?.message;

test('names in any script pass, their marks and joiners too', (t) => {
  const names = [
    ...[
      'Ada Lovelace',
      'Zoë O’Neill',
      '山田 太郎',
      'محمد علي',
      'שרה\u200F 1',
      'नेहा',
      'می\u200Cروم',
    ],
    ...['👩‍👧 family', '🏴󠁧󠁢󠁳󠁣󠁴󠁿', 'a\u0301', '\u061Cعدد', '-', "x'||1#", '<b>', '{{name}}', '%s \\n'],
  ];
  for (const name of names) {
    t.is(issueOf(plainLine(), name), undefined, name);
    t.is(issueOf(plainLines(), name), undefined, name);
  }
});

test('control characters, line separators and turns of direction are refused, each by its name', (t) => {
  const refused: [string, RegExp][] = [
    ['\u0000', /^must not hold U\+0000: control characters/],
    ['\u0007', /U\+0007/],
    ['\u001b[31m', /U\+001B/],
    ['\u007f', /U\+007F/],
    ['\u0085', /U\+0085/],
    ['\u009b2J', /U\+009B/],
    ['\u2028', /U\+2028/],
    ['\u2029', /U\+2029/],
    ...[0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069].map(
      (code): [string, RegExp] => [
        String.fromCodePoint(code),
        new RegExp(
          `^must not hold U\\+${code.toString(16).toUpperCase()}: characters that reverse`,
        ),
      ],
    ),
    ['\ud83d', /^must be valid Unicode$/],
    ['\ude00', /^must be valid Unicode$/],
  ];
  for (const [bad, issue] of refused) {
    for (const value of [bad, `Ada ${bad} Ltd`, `Ada${bad}`]) {
      t.regex(issueOf(plainLine(), value) ?? '', issue, JSON.stringify(value));
      t.regex(issueOf(plainLines(), value) ?? '', issue, JSON.stringify(value));
    }
  }
  for (const end of ['\n', '\r\n', '\t']) {
    t.regex(issueOf(plainLine(), `a${end}b`) ?? '', /control characters and line ends/);
    t.is(issueOf(plainLines(), `a${end}b`), undefined);
  }
  t.regex(issueOf(plainLines(), 'a\rb') ?? '', /U\+000D: control characters other than line ends/);
});

test('what passes is kept as it was typed, and shows on one line', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (value) => {
      const { value: kept, error } = plainLine().min(0).allow('').validate(value);
      if (error) return;
      t.is(kept, value);
      t.is(value.split(/[\r\n\v\f\u0085\u2028\u2029]/).length, 1);
      t.true(value.isWellFormed());
    }),
  );
});
