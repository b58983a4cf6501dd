// The log of TOTP verifications: every attempt, page by page, by its index alone.
import test from 'ava';
import { appCode } from '../support/authenticator.ts';
import { explain } from '../support/explain.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Stack, startStack } from '../support/stack.ts';
import { createApp, totpPhone } from '../support/totp-phone.ts';

let stack: Stack;
const clock = createHandClock();
const { confirm, wrongFor } = createApp(clock);

test.before(async () => {
  stack = await startStack('totplog', { clock, workers: [] });
});
test.after.always(() => stack?.close());

test.serial('every attempt is in the log, page by page, with its filters', async (t) => {
  const customer = await stack.customer();
  const phone = totpPhone(customer.live);
  const secret = await confirm(phone);
  await phone.verify(wrongFor(secret));
  const right = appCode(secret, clock.now());
  await phone.verify(right);
  await phone.verify(right);
  const sandbox = totpPhone(customer.test);
  await confirm(sandbox);
  const get = async (query: string) => {
    const answer = await customer.session.get(`/v1/clients/totp/log?${query}`);
    t.is(answer.status, 200, answer.text);
    return answer.data;
  };
  const items = (await get('')).items as Record<string, unknown>[];
  t.deepEqual(
    items.map(({ phone: number, status, reason, mode }) => [number, status, reason, mode]),
    [
      [sandbox.phone, 'verified', null, 'test'],
      [phone.phone, 'failed', 'used_code', 'live'],
      [phone.phone, 'verified', null, 'live'],
      [phone.phone, 'failed', 'wrong_code', 'live'],
      [phone.phone, 'verified', null, 'live'],
    ],
  );
  const walked: unknown[] = [];
  let before = '';
  for (;;) {
    const page = await get(`limit=2${before}`);
    walked.push(...(page.items as unknown[]));
    if (page.next_before === null) break;
    before = `&before=${page.next_before}`;
  }
  t.deepEqual(walked, items);
  t.is(((await get('status=failed')).items as unknown[]).length, 2);
  t.is(((await get('status=verified&mode=live')).items as unknown[]).length, 2);
  for (const wrong of [
    'limit=0',
    'limit=101',
    'before=nonsense',
    'status=sent',
    'mode=both',
    'page=2',
  ]) {
    const answer = await customer.live.get(`/v1/clients/totp/log?${wrong}`);
    t.is(answer.error.code, 'VALIDATION_ERROR', wrong);
  }
});

test.serial('the log is read by its index alone', async (t) => {
  for (const where of ['', "AND status = 'failed'", "AND mode = 'live'"]) {
    const sql = `SELECT * FROM totp_log WHERE account_id = ? ${where} ORDER BY id DESC LIMIT 51`;
    const [plan] = await explain(stack.api.db, sql, [Buffer.alloc(16)]);
    t.truthy(plan?.key);
    t.not(plan?.type, 'ALL');
    t.notRegex(String(plan?.Extra), /filesort|temporary/);
  }
});
