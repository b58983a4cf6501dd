// Tokens and PINs of own numbers: sealed where they are stored, and nowhere else.
import test from 'ava';
import { createLog } from '../../lib/kernel/log.ts';
import { aBusiness, aCode, connect, fault, signUp } from '../support/connections.ts';
import { control } from '../support/control.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

const lines: string[] = [];
let stack: Stack;
let redis: RedisKeys;

test.before(async () => {
  const log = createLog({
    ...{ level: 'debug', process: 'test' },
    destination: { write: (line) => lines.push(line) },
  });
  stack = await startStack('wabax', { log });
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const dump = async (): Promise<string> => {
  const [tables] = (await stack.api.db.raw('SHOW TABLES')) as [Record<string, string>[]];
  const parts = await Promise.all(
    tables.flatMap((row) => Object.values(row)).map((table) => stack.api.db(table)),
  );
  return (parts.flat() as Record<string, unknown>[])
    .flatMap((row) => Object.values(row))
    .map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value)))
    .join('\n');
};

test('no answer, row, log line or key of Redis shows a token, a code or a PIN', async (t) => {
  const answers: string[] = [];
  const noting = async (asked: ReturnType<typeof connect>) => {
    const answer = await asked;
    answers.push(answer.text);
    return answer;
  };
  const secrets: string[] = [stack.config.whatsappAppSecret];
  const [manual, signup] = [await stack.customer(), await stack.customer()];
  const [one, two] = [await aBusiness(stack), await aBusiness(stack, { registered: false })];
  secrets.push(one.access_token, two.access_token, one.code, two.code);
  t.is((await noting(connect(manual.live, one))).status, 200);
  const failing = { call: `POST ${two.phone_number_id}/register`, code: 133005 };
  await fault(stack, failing);
  t.is((await noting(signUp(signup.live, two, two.code))).status, 400);
  await fault(stack, { ...failing, answer: null });
  const code = await aCode(stack, two);
  secrets.push(code);
  t.is((await noting(signUp(signup.live, two, code))).status, 200);
  await noting(signUp(signup.live, two, code));
  await noting(connect(manual.live, one, { access_token: 'EAAwrongwrongwrongwrong' }));
  secrets.push('EAAwrongwrongwrongwrong');
  for (const call of ['template/create', 'template/check']) {
    await noting(manual.live.post(`/v1/clients/waba/${call}`, {}));
  }
  await noting(manual.live.get('/v1/clients/waba/details'));

  const { connections, sealer, db } = stack.api;
  const found = await connections.find(signup.accountId);
  const context = { purpose: 'whatsapp-token', record: found?.id ?? '' };
  const issued = sealer.open(found?.sealedToken ?? '', context);
  const [pin] = await db('whatsapp_pins').where({ phone_number_id: two.phone_number_id });
  const opened = sealer.open(pin.sealed_pin, {
    ...{ purpose: 'whatsapp-pin', record: two.phone_number_id },
  });
  t.regex(opened, /^\d{6}$/);
  secrets.push(issued);
  await manual.live.send(stack.phone().number);
  await control(stack.sim.url, 'DELETE', `/businesses/${one.waba_id}/tokens`);
  const broken = async () =>
    (await connections.find(manual.accountId))?.status === 'broken' || undefined;
  await manual.live.send(stack.phone().number);
  await eventually(t, broken);
  await noting(manual.live.post('/v1/clients/waba/template/check', {}));

  const prefix = stack.config.keyPrefix;
  const kept = [...(await redis.snapshot(prefix))].map(
    ([name, { value }]) => name + Buffer.from(value, 'base64').toString('latin1'),
  );
  const places = { answers: answers.join('\n'), rows: await dump(), logs: lines.join('\n') };
  for (const [place, text] of Object.entries({ ...places, redis: kept.join('\n') })) {
    t.true(text.length > 100, place);
    for (const secret of secrets)
      t.false(text.includes(secret), `${secret.slice(0, 4)} in ${place}`);
  }
  const alone = new RegExp(`(?<![0-9a-f.-])${opened}(?![0-9a-f.-])`, 'i');
  for (const text of [places.answers, places.logs]) t.notRegex(text, alone);

  await manual.live.post('/v1/clients/waba/disconnect', {});
  t.deepEqual(await db('whatsapp_connections').where({ phone_number_id: one.phone_number_id }), []);
});
