// The typed client: its types are those of the API, and its program runs.
import { readFileSync } from 'node:fs';
import test from 'ava';
import { createTessera, sendAndVerify } from '../../examples/typescript/send-and-verify.ts';
import { clientTypes, clientTypesFile } from '../support/client-types.ts';
import { runExample } from '../support/run-example.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('examples_ts');
});
test.after.always(() => stack?.close());

test('the committed types are those of GET /openapi.json', async (t) => {
  const document = (await (await fetch(`${stack.url}/openapi.json`)).json()) as object;
  const same = (await clientTypes(document)) === readFileSync(clientTypesFile, 'utf8');
  t.true(same, 'the API changed: run node test/support/client-types.ts');
});

test('the program ends in a verified code, in the sandbox and for real', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone();
  const run = (key: string | undefined, input?: Promise<string>) =>
    runExample(
      ['node', 'examples/typescript/send-and-verify.ts'],
      { TESSERA_URL: stack.url, TESSERA_KEY: key ?? '', TESSERA_PHONE: phone.number },
      input,
    );
  const sandbox = await run(customer.test.key);
  t.is(sandbox.code, 0, sandbox.errors);
  t.regex(sandbox.output, /^verified: \S+\n$/);
  t.deepEqual(await phone.messages(), []);
  const arrived = eventually(t, async () => (await phone.code()) || undefined);
  const real = await run(
    customer.live.key,
    arrived.then((code) => `${code}\n`),
  );
  t.is(real.code, 0, real.errors);
  t.regex(real.output, /verified: \S+\n$/);
});

test('a wrong code can be asked for again; other errors say what to do', async (t) => {
  const { test: sandbox } = await stack.customer();
  const tessera = createTessera(stack.url, sandbox.key ?? '');
  const codes = ['000000', '123456'];
  const readCode = async () => codes.shift() ?? '';
  t.regex(await sendAndVerify(tessera, stack.phone().number, readCode), /^\S+$/);
  const never = () => Promise.reject(new Error('no code was to be asked for'));
  const refused = (phone: string) => t.throwsAsync(sendAndVerify(tessera, phone, never));
  t.regex((await refused('+15550104291')).message, /^RATE_LIMIT_EXCEEDED: wait 30 seconds$/);
  t.regex((await refused('+15550104091')).message, /^CHANNEL_NOT_LINKED: open https:\S+ to get/);
  t.regex((await refused('+15550104021')).message, /^INSUFFICIENT_CREDITS: The balance/);
});
