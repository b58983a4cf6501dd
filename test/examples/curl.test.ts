// The curl quickstart, run as a newcomer would run it.
import test from 'ava';
import { createPhone } from '../support/phones.ts';
import { runExample } from '../support/run-example.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('examples_curl');
});
test.after.always(() => stack?.close());

const quickstart = (environment: Record<string, string>, input?: Promise<string>) =>
  runExample(
    ['sh', 'examples/curl/quickstart.sh'],
    { TESSERA_URL: stack.url, ...environment },
    input,
  );

test('with a test key it ends in a verified code, and nothing was sent', async (t) => {
  const { test: sandbox } = await stack.customer();
  const run = await quickstart({ TESSERA_KEY: sandbox.key ?? '' });
  t.is(run.code, 0, run.errors);
  t.regex(run.output, /"status":"sent"/);
  t.true(run.output.trim().endsWith('{"data":{"verified":true}}'), run.output);
  t.deepEqual(await createPhone(stack.sim.url, '+14155552671').messages(), []);
});

test('with a live key it asks for the code that arrived', async (t) => {
  const { live } = await stack.customer();
  const phone = stack.phone();
  const arrived = eventually(t, async () => (await phone.code()) || undefined);
  const run = await quickstart(
    { TESSERA_KEY: live.key ?? '', TESSERA_PHONE: phone.number },
    arrived.then((code) => `${code}\n`),
  );
  t.is(run.code, 0, run.errors);
  t.true(run.output.trim().endsWith('{"data":{"verified":true}}'), run.output);
});

test('an error ends it with its code', async (t) => {
  const run = await quickstart({ TESSERA_KEY: 'sk_test_nobody' });
  t.is(run.code, 22);
  t.regex(run.output, /INVALID_API_KEY/);
  t.notRegex(run.output, /verify/);
});

test('without settings it says what is missing', async (t) => {
  const run = await runExample(['sh', 'examples/curl/quickstart.sh'], { TESSERA_URL: stack.url });
  t.not(run.code, 0);
  t.regex(run.errors, /TESSERA_KEY.*an API key/);
});
