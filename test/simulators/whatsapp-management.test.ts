// Management paths of the simulated WhatsApp: templates, numbers, accounts, signup codes and limits.
import test from 'ava';
import {
  bearer,
  call,
  fieldsOf,
  graph,
  sendCode,
  startPair,
  templateMessage,
  whatsapp,
} from './harness.ts';

const newTemplate = (name: string, language = 'en_US') => ({
  name,
  language,
  category: 'AUTHENTICATION',
  message_send_ttl_seconds: 300,
  components: [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 5 },
    { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }] },
  ],
});
const templates = `${whatsapp.wabaId}/message_templates`;

test('a template is created pending, approved by webhook, found, sent and deleted', async (t) => {
  const { sim, receiver } = await startPair(t);
  const created = await graph(sim, templates, 'POST', newTemplate('otp_code_two'));
  t.like(created.body, { status: 'PENDING', category: 'AUTHENTICATION' });
  await receiver.until((all) => fieldsOf(all, 'message_template_status_update').length === 1);
  const found = await graph(
    sim,
    `${templates}?name=otp_code_two&fields=name,status,language,components`,
  );
  t.like(found.body.data[0], { id: created.body.id, name: 'otp_code_two', status: 'APPROVED' });
  t.is(found.body.data[0].components[2].buttons[0].type, 'URL');
  t.is((await graph(sim, created.body.id)).body.status, 'APPROVED');
  const message = templateMessage('14155550123');
  message.template.name = 'otp_code_two';
  t.is((await graph(sim, `${whatsapp.phoneNumberId}/messages`, 'POST', message)).status, 200);
  t.deepEqual((await graph(sim, `${templates}?name=otp_code_two`, 'DELETE')).body, {
    success: true,
  });
  t.is((await graph(sim, `${templates}?name=otp_code_two`, 'DELETE')).body.error.code, 100);
});

test('the name filter finds parts of names, lists have pages', async (t) => {
  const { sim } = await startPair(t);
  await graph(sim, templates, 'POST', newTemplate('otp_code_two'));
  await graph(sim, templates, 'POST', newTemplate('otp_code', 'de'));
  const all = await graph(sim, `${templates}?name=otp_code`);
  t.is(all.body.data.length, 3);
  const first = await graph(sim, `${templates}?limit=2`);
  const { after } = first.body.paging.cursors;
  const second = await graph(sim, `${templates}?limit=2&after=${encodeURIComponent(after)}`);
  t.deepEqual([first.body.data.length, second.body.data.length], [2, 1]);
});

test('what Meta would not take as a template is refused', async (t) => {
  const { sim } = await startPair(t);
  const good = newTemplate('other');
  const wrong = [
    newTemplate('otp_code'),
    { ...good, name: 'Upper' },
    { ...good, category: 'MARKETING' },
    { ...good, message_send_ttl_seconds: 5 },
    { ...good, components: [] },
    { ...good, components: [...good.components, { type: 'FOOTER', code_expiration_minutes: 91 }] },
  ];
  for (const body of wrong) t.is((await graph(sim, templates, 'POST', body)).body.error.code, 100);
});

test('the review can be instant, manual or a rejection', async (t) => {
  const { sim, receiver } = await startPair(t);
  const review = (mode: string) => call(`${sim.url}/templates/review`, 'PUT', { review: mode });
  await review('instant');
  t.is((await graph(sim, templates, 'POST', newTemplate('at_once'))).body.status, 'APPROVED');
  await review('reject');
  await graph(sim, templates, 'POST', newTemplate('never'));
  await receiver.until((all) => fieldsOf(all, 'message_template_status_update').length === 1);
  t.like(fieldsOf(receiver.received, 'message_template_status_update')[0], { event: 'REJECTED' });
  t.is((await review('maybe')).status, 400);
});

test('numbers and accounts are read by fields', async (t) => {
  const { sim } = await startPair(t);
  const number = await graph(sim, whatsapp.phoneNumberId);
  t.deepEqual(Object.keys(number.body), [
    'id',
    'verified_name',
    'display_phone_number',
    'quality_rating',
  ]);
  const more = await graph(sim, `${whatsapp.phoneNumberId}?fields=status,throughput`);
  t.like(more.body, { status: 'CONNECTED', throughput: { level: 'STANDARD' } });
  const list = await graph(sim, `${whatsapp.wabaId}/phone_numbers`);
  t.is(list.body.data[0].id, whatsapp.phoneNumberId);
  t.is((await graph(sim, `${whatsapp.wabaId}?fields=name`)).body.name, 'Tessera');
  const apps = await graph(sim, `${whatsapp.wabaId}/subscribed_apps`);
  t.is(apps.body.data.length, 1);
  t.is((await graph(sim, '12345')).body.error.error_subcode, 33);
});

const exchange = (url: string, code: string, secret = whatsapp.appSecret) =>
  call(`${url}/graph/v25.0/oauth/access_token?client_id=1&client_secret=${secret}&code=${code}`);

test('a signup code is exchanged once within 30 s, and its token reaches that account alone', async (t) => {
  let now = 1_750_000_000_000;
  const { sim } = await startPair(t, { clock: { now: () => now } });
  const made = await call(`${sim.url}/businesses`, 'POST', { name: 'Customer' });
  const { waba_id: wabaId, phone_number_id: numberId, code } = made.body;
  t.is((await exchange(sim.url, code, 'wrong')).body.error.code, 1);
  const token = (await exchange(sim.url, code)).body.access_token;
  t.is((await exchange(sim.url, code)).body.error.error_subcode, 36009);
  const late = (await call(`${sim.url}/businesses/${wabaId}/code`, 'POST')).body.code;
  now += 30_001;
  t.is((await exchange(sim.url, late)).body.error.error_subcode, 36007);
  t.is((await exchange(sim.url, 'nonsense')).body.error.error_subcode, 36008);

  const graphUrl = `${sim.url}/graph/v25.0`;
  const ask = (path: string, method = 'GET', body?: unknown) =>
    call(`${graphUrl}/${path}`, method, body, bearer(token));
  t.is((await ask(`${wabaId}?fields=name`)).body.name, 'Customer');
  t.is((await ask(whatsapp.wabaId)).body.error.error_subcode, 33);
  t.is(
    (await ask(`${numberId}/messages`, 'POST', templateMessage('14155550123'))).body.error.code,
    133010,
  );
  const pin = { messaging_product: 'whatsapp', pin: '581063' };
  t.deepEqual((await ask(`${numberId}/register`, 'POST', pin)).body, { success: true });
  t.is(
    (await ask(`${numberId}/register`, 'POST', { ...pin, pin: '000000' })).body.error.code,
    133005,
  );
  t.is(
    (await ask(`${numberId}/messages`, 'POST', templateMessage('14155550123'))).body.error.code,
    132001,
  );
  await call(`${sim.url}/businesses/${wabaId}/tokens`, 'DELETE');
  t.is((await ask(wabaId)).body.error.code, 190);
});

test('the pair limit lets 45 through, then one every 6 s', async (t) => {
  let now = 1_750_000_000_000;
  const { sim } = await startPair(t, { clock: { now: () => now } });
  await call(`${sim.url}/limits`, 'PUT', { pair: true });
  for (let sent = 0; sent < 45; sent += 1) t.is((await sendCode(sim, '14155550123')).status, 200);
  t.is((await sendCode(sim, '14155550123')).body.error.code, 131056);
  t.is((await sendCode(sim, '14155550124')).status, 200);
  now += 6000;
  t.is((await sendCode(sim, '14155550123')).status, 200);
  t.is((await sendCode(sim, '14155550123')).body.error.code, 131056);
});

test('the throughput limit counts messages per second', async (t) => {
  let now = 1_750_000_000_000;
  const { sim } = await startPair(t, { clock: { now: () => now } });
  await call(`${sim.url}/limits`, 'PUT', { throughput_per_second: 2 });
  await sendCode(sim, '14155550121');
  await sendCode(sim, '14155550122');
  t.is((await sendCode(sim, '14155550123')).body.error.code, 130429);
  now += 1000;
  t.is((await sendCode(sim, '14155550123')).status, 200);
  t.is((await call(`${sim.url}/limits`, 'PUT', { throughput_per_second: 0 })).status, 400);
});
