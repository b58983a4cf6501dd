// The site: links that lead somewhere, pages as Markdown, sizes, and how files are served.
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import { packFiles, unpackFiles } from '../../api/docs/pack.ts';
import { exampleUrl } from '../../api/docs/page.ts';
import { type File, renderSite } from '../../api/docs/render.ts';
import { answerFile } from '../../api/docs/serve.ts';
import { createSite } from '../../api/docs/site.ts';
import { listen } from '../../api/listen.ts';
import { type Stack, startStack } from '../support/stack.ts';
import { facts, pages, visited } from './facts.ts';

const files = renderSite(facts);
const at = new Map(files.map((file) => [file.url, file]));
const textOf = ({ gzip }: File): string => gunzipSync(gzip).toString();
const html = files.filter(({ type }) => type.startsWith('text/html'));

test('every link leads to a page, and to a part of it that is there', (t) => {
  const ids = new Map(
    html.map((file) => [
      file.url,
      [...textOf(file).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id),
    ]),
  );
  for (const file of html) {
    for (const [, href = ''] of textOf(file).matchAll(/ href="([^"]*)"/g)) {
      if (/^https?:/.test(href) || href === '/openapi.json') continue;
      const [url = '', id] = href.split('#');
      const target = url === '' ? file.url : url;
      t.true(at.has(target), `${file.url}: ${href}`);
      if (id) t.true(ids.get(target)?.includes(id), `${file.url}: ${href}`);
    }
  }
});

test('ids are unique in a page', (t) => {
  for (const file of html) {
    const found = [...textOf(file).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    t.is(new Set(found).size, found.length, file.url);
  }
});

test('each page is also Markdown, and llms.txt lists them all', (t) => {
  const index = textOf(at.get('/docs/llms.txt') as File);
  t.true(index.includes(`Examples name ${exampleUrl}: put the address`));
  for (const { path, title } of pages) {
    const url = `/docs/${path === '' ? 'index' : path}.md`;
    const text = textOf(at.get(url) as File);
    t.true(text.startsWith(`# ${title}\n`), url);
    t.notRegex(text, /\{#[\w-]+\}/, `${url}: an id of a heading is no Markdown`);
    t.true(index.includes(`(${url})`), url);
  }
});

test('no page takes 200 kB with all it loads, the search included', (t) => {
  const assets = files.filter(({ url }) => url.startsWith('/docs/assets/'));
  for (const file of assets) t.true(textOf(file).length > 100, file.url);
  const shared = assets.reduce((sum, { gzip }) => sum + gzip.length, 0);
  const largest = html.toSorted((one, other) => other.gzip.length - one.gzip.length)[0];
  const total = shared + (largest?.gzip.length ?? 0);
  t.log(`assets ${shared} bytes, largest page ${largest?.url} ${largest?.gzip.length} bytes`);
  t.true(total < 200_000, String(total));
});

test('pages hold no script or style of their own, and load nothing from elsewhere', (t) => {
  for (const file of html) {
    const text = textOf(file);
    t.notRegex(text, /<script(?![^>]*src="\/docs\/)|<style| style="| on\w+="/, file.url);
    t.notRegex(text, /(src|action|srcset)="(https?:)?\/\//, file.url);
  }
});

/** Tags with their attributes' names and their classes: what scripts, styles and the policy of the page care about. */
const kindsOf = (file: File): Set<string> =>
  new Set(
    [...textOf(file).matchAll(/<([a-z]\w*)((?: [\w-]+(?:="[^"]*")?)*)>/g)].map(
      ([, tag, attributes = '']) =>
        `${tag} ${attributes.replace(/(?<! class)="[^"]*"/g, '').trim()}`,
    ),
  );

test('pages no browser of the tests visits hold nothing that those it visits do not', (t) => {
  const urls = new Set(visited.map(({ path }) => (path === '' ? '/docs' : `/docs/${path}`)));
  const seen = html.filter(({ url }) => urls.has(url));
  t.is(seen.length, visited.length);
  const known = new Set(seen.flatMap((file) => [...kindsOf(file)]));
  for (const file of html) {
    t.deepEqual(
      [...kindsOf(file)].filter((kind) => !known.has(kind)),
      [],
      file.url,
    );
  }
});

test('files survive being packed', (t) => {
  const unpacked = unpackFiles(packFiles(files));
  t.deepEqual([...unpacked.keys()], [...at.keys()]);
  for (const { gzip, ...head } of files) {
    const { gzip: bytes, ...found } = unpacked.get(head.url) as File;
    t.deepEqual(found, head);
    t.true(bytes.equals(gzip), head.url);
  }
});

test('with Turnstile only the playground may load it', (t) => {
  const guarded = renderSite({ ...facts, turnstileSiteKey: '1x00' });
  const origins = guarded.filter(({ origin }) => origin !== null);
  t.deepEqual(
    origins.map(({ url }) => url),
    ['/docs/playground'],
  );
  const [page] = origins as [File];
  t.regex(
    textOf(page),
    /<script src="https:\/\/challenges\.example\/turnstile\/v0\/api\.js" async defer>/,
    'as its documentation has it: no module',
  );
  const policy = answerFile(page, {}).headers?.['Content-Security-Policy'] ?? '';
  t.regex(policy, /script-src 'self' https:\/\/challenges\.example;/);
  const off = renderSite({ ...facts, playground: 'off', turnstileSiteKey: '1x00' });
  t.regex(textOf(off.find(({ url }) => url === '/docs/playground') as File), /switched off/);
});

test('a site that could not be made is made when asked for again, and once for many', async (t) => {
  let tries = 0;
  const made = new Map(files.map((file) => [file.url, file]));
  const site = createSite(
    () => facts,
    () => {
      tries += 1;
      return tries === 1 ? Promise.reject(new Error('out of memory')) : Promise.resolve(made);
    },
  );
  await t.throwsAsync(site.find('/docs'), { message: /not take this request/ });
  const found = await Promise.all(['/docs', '/docs/', '/docs/limits'].map(site.find));
  t.deepEqual(
    found.map(({ status, file }) => [status, file.url]),
    [
      [200, '/docs'],
      [200, '/docs'],
      [200, '/docs/limits'],
    ],
  );
  t.is((await site.find('/docs/404')).status, 404);
  t.is(tries, 2);
});

let stack: Stack;
test.before(async () => {
  stack = await startStack('docs_site', { workers: [] });
});
test.after.always(() => stack?.close());

const fetchOnce = (path: string, headers: Record<string, string>, method: string) =>
  fetch(stack.url + path, { method, headers });

/** Asks again as a 503 says: the pages are made when they are first asked for, which takes a slow machine its time. */
const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
  let answer = await fetchOnce(path, headers, method);
  for (let tries = 0; answer.status === 503 && tries < 10; tries++) {
    const waitMs = Number(answer.headers.get('retry-after')) * 1_000;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    answer = await fetchOnce(path, headers, method);
  }
  return answer;
};

test('pages are revalidated by ETag, assets are kept for good', async (t) => {
  const first = await get('/docs/limits');
  t.is(first.status, 200);
  t.regex(first.headers.get('content-type') ?? '', /^text\/html/);
  t.is(first.headers.get('content-encoding'), 'gzip');
  t.is(first.headers.get('cache-control'), 'public, no-cache');
  t.is(first.headers.get('x-content-type-options'), 'nosniff');
  t.regex(
    first.headers.get('content-security-policy') ?? '',
    /^default-src 'none'; script-src 'self';/,
  );
  const text = await first.text();
  const etag = first.headers.get('etag') ?? '';
  const again = await get('/docs/limits', { 'if-none-match': `"other", W/${etag}` });
  t.is(again.status, 304);
  t.is(await again.text(), '');
  const [, script = ''] = /src="(\/docs\/assets\/theme\.[^"]+)"/.exec(text) ?? [];
  const asset = await get(script);
  t.regex(asset.headers.get('cache-control') ?? '', /immutable/);
  t.regex(asset.headers.get('content-type') ?? '', /^text\/javascript/);
});

test('who takes no gzip gets the bytes as they are; HEAD has the headers alone', async (t) => {
  const plain = await get('/docs/quickstart.md', { 'accept-encoding': 'identity' });
  t.is(plain.headers.get('content-encoding'), null);
  t.regex(await plain.text(), /^# Quickstart\n/);
  t.is(
    (await get('/docs', { 'accept-encoding': 'gzip;q=0' })).headers.get('content-encoding'),
    null,
  );
  const head = await get('/docs/limits', {}, 'HEAD');
  t.is(head.status, 200);
  t.is(await head.text(), '');
  t.truthy(head.headers.get('etag'));
});

test('what is not there is a page that says so; other methods are refused', async (t) => {
  const none = await get('/docs/nothing');
  t.is(none.status, 404);
  t.regex(await none.text(), /There is no such page/);
  for (const path of ['/docs/../package.json', '/docs/%2e%2e/package.json', '/docs/assets/']) {
    t.is((await get(path)).status, 404, path);
  }
  const posted = await get('/docs/limits', {}, 'POST');
  t.is(posted.status, 405);
  t.is(posted.headers.get('allow'), 'GET, HEAD');
  const first = await stack.anybody.get('/docs');
  t.is(first.status, 200);
});

test('the OpenAPI document is cached in the same way', async (t) => {
  const answer = await get('/openapi.json');
  t.is(answer.headers.get('content-encoding'), 'gzip');
  const etag = answer.headers.get('etag') ?? '';
  t.is((await get('/openapi.json', { 'if-none-match': etag })).status, 304);
});

test('an answer of the API is nothing a browser keeps, guesses at, renders, runs or frames', async (t) => {
  const answers = {
    data: await get('/health'),
    error: await get('/v1/clients/me'),
    nothing: await get('/nothing'),
  };
  for (const [what, { headers }] of Object.entries(answers)) {
    t.is(headers.get('cache-control'), 'no-store', what);
    t.is(headers.get('x-content-type-options'), 'nosniff', what);
    t.is(headers.get('referrer-policy'), 'no-referrer', what);
    t.is(headers.get('content-type'), 'application/json; charset=utf-8', what);
    const policy = headers.get('content-security-policy') ?? '';
    for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      t.true(policy.includes(rule), `${what}: ${rule}`);
    }
    t.is(headers.get('access-control-allow-origin'), null, what);
    t.is(headers.get('set-cookie'), null, what);
  }
});

test('over TLS every answer asks for TLS for a year; over plain HTTP none does', async (t) => {
  const listening = await listen({
    ...stack.api,
    config: { ...stack.config, trustedProxies: 1 },
  });
  t.teardown(listening.close);
  for (const path of ['/health', '/docs', '/docs/nothing', '/v1/clients/me']) {
    const ask = (scheme: string) =>
      fetch(`http://127.0.0.1:${listening.port}${path}`, {
        headers: { 'x-forwarded-proto': scheme },
      });
    const found = (await ask('https')).headers.get('strict-transport-security');
    t.is(found, 'max-age=31536000; includeSubDomains', path);
    t.is((await ask('http')).headers.get('strict-transport-security'), null, path);
    const plain = await get(path, { 'x-forwarded-proto': 'https' });
    t.is(plain.headers.get('strict-transport-security'), null, `${path}: nobody vouches for it`);
  }
});
