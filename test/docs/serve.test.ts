// How a file of the documentation goes out.
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { answerFile } from '../../api/docs/serve.ts';

test('clients that take no gzip share one copy of a file, however many of them read it slowly', (t) => {
  const gzip = gzipSync('a page');
  const file = { etag: '"1"', type: 'text/html', immutable: false, origin: null, gzip };
  const [first, second] = [answerFile(file, {}), answerFile(file, {})];
  t.is(String(first.body), 'a page');
  t.is(first.body, second.body);
  t.is(answerFile(file, { 'accept-encoding': 'gzip' }).body, gzip);
});
