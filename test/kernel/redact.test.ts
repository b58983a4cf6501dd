// The second net: free text and errors lose whatever looks like a secret, and logs their named fields.
import test from 'ava';
import { createLog } from '../../lib/kernel/log.ts';
import { describeError, redact } from '../../lib/kernel/redact.ts';
import { newKeyText } from '../../lib/keys/rules.ts';

const key = newKeyText('live');

for (const [what, text, expected] of [
  ['a phone number', 'to +14155550123 now', 'to *** now'],
  ['a phone number without plus', '14155550123', '***'],
  ['a phone number in a URL', '/phones/%2B14155550123/messages', '/phones/%2B***/messages'],
  ['a code', 'code 493027, wrong', 'code ***, wrong'],
  ['a key', `with ${key}!`, 'with sk_live_***!'],
  ['a bearer', `Authorization: Bearer ${key}`, 'Authorization: Bearer ***'],
  ['a session', 'sess_abc-DEF and rt_123', 'sess_*** and rt_***'],
  ['a webhook secret', 'whsec_a+b/c=', 'whsec_***'],
  ['a bot token', 'https://x/bot12345:AA-b_c/sendMessage', 'https://x/bot***/sendMessage'],
  ['a password in an address', 'amqp://user:pa55@host:5672/v', 'amqp://***@host:5672/v'],
  ['a Meta token', 'EAAabcdefghij0123456789', 'EAA***'],
  ['short numbers stay', 'HTTP 502 after 12345 ms', 'HTTP 502 after 12345 ms'],
] as const) {
  test(`redact: ${what}`, (t) => {
    t.is(redact(text), expected);
  });
}

test('an error is one line of at most 300 characters, named and redacted', (t) => {
  t.is(describeError(new TypeError('bad\n  +14155550123')), 'TypeError: bad ***');
  t.is(describeError('just text 123456'), 'just text ***');
  t.is(describeError(undefined), 'undefined');
  t.is(describeError(new Error('x'.repeat(1_000))).length, 300);
});

test('a log line is JSON in UTC, its secret fields and its text are masked, children too', (t) => {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLog({ level: 'debug', process: 'test', destination });
  const fields = {
    phone: '+14155550123',
    code: '493027',
    token: 'x',
    authorization: key,
    url: 'y',
  };
  log.info({ ...fields, request_id: 'r1' }, `sent to +14155550123 with ${key}`);
  log.child({ worker: 'w' }).debug({ secret: 's', password: 'p', key }, 'code 493027');
  for (const line of lines) {
    t.notRegex(line, /4155550123|493027|sk_live_tsr/);
    t.regex(String(JSON.parse(line).time), /^\d{4}-\d\d-\d\dT.*Z$/);
  }
  t.like(JSON.parse(lines[0] ?? ''), {
    ...{ level: 'info', process: 'test', request_id: 'r1', phone: '***', code: '***' },
    msg: 'sent to *** with sk_live_***',
  });
  t.like(JSON.parse(lines[1] ?? ''), { level: 'debug', worker: 'w', secret: '***', key: '***' });
});

test('what is below the level is not written', (t) => {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLog({ level: 'warn', process: 'test', destination });
  log.info({}, 'no');
  log.warn({}, 'yes');
  t.is(lines.length, 1);
});
