// The wide lines of the log: one per request and per job, enough to find what happened, and no secret.
import test from 'ava';
import { sourceKeyOf } from '../../api/source.ts';
import { createLog } from '../../lib/kernel/log.ts';
import { maskPhone } from '../../lib/kernel/phone.ts';
import { isKept, loginHash } from '../../lib/pulse/lines.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

const lines: Record<string, unknown>[] = [];
let stack: Stack;

test.before(async () => {
  const log = createLog({
    ...{ level: 'info', process: 'test' },
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  stack = await startStack('lines', { log, settings: { LOG_SUCCESS_PERCENT: '100' } });
});
test.after.always(() => stack?.close());

const lineOf = (about: Record<string, unknown>) =>
  lines.find((line) => Object.entries(about).every(([name, value]) => line[name] === value));

test('a send leaves one line of its request and one of its job, about the same message', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone();
  const traceId = 'a'.repeat(32);
  const sent = await customer.live.send(phone.number, {
    traceparent: `00-${traceId}-${'b'.repeat(16)}-01`,
  });
  const requestId = sent.headers.get('x-request-id');
  const about = {
    ...{ request_id: requestId, account_id: customer.accountId, mode: 'live' },
    recipient: maskPhone(phone.number),
  };
  const request = await eventually(t, () => lineOf({ msg: 'request', request_id: requestId }));
  t.like(request, {
    ...about,
    ...{ level: 'info', method: 'POST', route: '/v1/otp/send', status: 200 },
    ...{ key_id: customer.liveKeyId, message_id: sent.data.message_id },
  });
  t.is(request.trace_id, traceId);
  t.is(typeof request.ms, 'number');
  const job = await eventually(t, () => lineOf({ msg: 'job', request_id: requestId }));
  t.like(job, { ...about, job: 'whatsapp.send', outcome: 'done', attempt: 1 });
  t.is(`otp_${job.message_id}`, String(sent.data.message_id));
  t.is(job.recipient_hash, request.recipient_hash);
  t.is(lines.filter((line) => line.msg === 'request' && line.request_id === requestId).length, 1);
  const written = JSON.stringify(lines);
  t.false(written.includes(phone.number));
  t.false(written.includes(`"${await phone.code()}"`));
});

test('a call of a provider names the job it became, which may carry another call’s request id', async (t) => {
  const customer = await stack.customer();
  await customer.live.send(stack.phone().number);
  const route = '/v1/inbound/whatsapp';
  const call = await eventually(t, () => lineOf({ msg: 'request', route, status: 200 }));
  const [id] = call.jobs as string[];
  const job = await eventually(t, () => lineOf({ msg: 'job', message_id: id }));
  t.like(job, { job: 'whatsapp.status', type: 'receipts', outcome: 'done' });
});

test('a refusal says its code, and a job that is tried again why', async (t) => {
  const { live } = await stack.customer();
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'rate_limited' });
  const failed = await live.send(phone.number);
  t.not(failed.status, 200);
  const requestId = failed.headers.get('x-request-id');
  await eventually(t, () =>
    lineOf({ msg: 'request', request_id: requestId, error: failed.error.code }),
  );
  const retried = lineOf({ msg: 'job', request_id: requestId, outcome: 'retry' });
  t.like(retried, { level: 'warn', job: 'whatsapp.send', attempt: 1 });
  t.regex(String(retried?.reason), /^whatsapp_/);
});

test('failures and slow ones are always written, of the rest a share that hangs together', (t) => {
  const quick = { failed: false, ms: 10 };
  const none = { share: 0, slowMs: 1_000 };
  t.false(isKept({ ...quick, id: 'a' }, none));
  t.true(isKept({ ...quick, id: 'a', failed: true }, none));
  t.true(isKept({ ...quick, id: 'a', ms: 1_000 }, none));
  t.true(isKept({ ...quick, id: 'a' }, { ...none, share: 1 }));
  const tenth = { share: 0.1, slowMs: 1_000 };
  const ids = Array.from({ length: 10_000 }, (_, at) => `request-${at * 7_919}`);
  const kept = ids.filter((id) => isKept({ ...quick, id }, tenth));
  t.true(kept.length > 800 && kept.length < 1_200, String(kept.length));
  t.deepEqual(
    kept,
    ids.filter((id) => isKept({ ...quick, id }, tenth)),
  );
});

test('a failed login names keyed hashes of e-mail address and source, and neither in clear', async (t) => {
  const email = 'Ada.Lovelace@tessera.example';
  const failed = await stack.anybody.post('/v1/clients/login', { email, password: 'not this one' });
  const request_id = failed.headers.get('x-request-id');
  const line = await eventually(t, () => lineOf({ msg: 'request', request_id }));
  t.like(line, { route: '/v1/clients/login', error: 'INVALID_CREDENTIALS' });
  const { recipients } = stack.api;
  t.is(line.email_hash, loginHash(recipients, 'email', 'ada.lovelace@tessera.example'));
  t.is(line.source_hash, loginHash(recipients, 'source', sourceKeyOf('127.0.0.1')));
  t.notRegex(JSON.stringify(line), /lovelace|127\.0\.0\.1/i);
  const other = await stack.anybody.post('/v1/clients/login', {
    email: 'somebody.else@tessera.example',
    password: 'not this one',
  });
  const id = other.headers.get('x-request-id');
  const second = await eventually(t, () => lineOf({ msg: 'request', request_id: id }));
  t.not(second.email_hash, line.email_hash);
  t.is(second.source_hash, line.source_hash);
});
