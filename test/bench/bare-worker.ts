// The queue door of the bare pipeline: HTTP out, grouped insert, reply, and acks after the commit.
import type { ConsumeMessage } from 'amqplib';
import mysql from 'mysql2/promise';
import { Pool } from 'undici';
import {
  type BareJob,
  type BareReply,
  bareQueue,
  declareQueue,
  endOnSignal,
  openConnection,
  sayReady,
  setting,
} from './bare-settings.ts';

const prefetch = 200;
const groupWaitMs = 3;
const groupMax = 200;

type Sent = { message: ConsumeMessage; job: BareJob; wamid: string };

const provider = new URL(setting('WHATSAPP_BASE_URL'));
const path = `${provider.pathname}/v25.0/${setting('WHATSAPP_PHONE_NUMBER_ID')}/messages`;
const headers = {
  authorization: `Bearer ${setting('WHATSAPP_ACCESS_TOKEN')}`,
  'content-type': 'application/json',
};
const template = {
  name: setting('WHATSAPP_TEMPLATE_NAME'),
  language: { code: setting('WHATSAPP_TEMPLATE_LANGUAGE') },
};
const pool = new Pool(provider.origin, { connections: 128, pipelining: 1 });
const database = await mysql.createConnection(setting('BARE_MYSQL_URL'));
const publishing = await openConnection();
const consuming = await openConnection();
await declareQueue(consuming);
const answers = await publishing.createChannel();
const channel = await consuming.createChannel();

const templateMessage = ({ id, phone, code }: BareJob) => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to: phone.slice(1),
  type: 'template',
  biz_opaque_callback_data: id,
  template: {
    ...template,
    components: [
      { type: 'body', parameters: [{ type: 'text', text: code }] },
      { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: code }] },
    ],
  },
});

/** Calls the provider. @throws Error unless it took the message */
const callProvider = async (job: BareJob): Promise<string> => {
  const body = JSON.stringify(templateMessage(job));
  const { statusCode, body: answer } = await pool.request({ method: 'POST', path, headers, body });
  const { messages } = (await answer.json()) as { messages?: { id: string }[] };
  const wamid = messages?.[0]?.id;
  if (statusCode !== 200 || !wamid) throw new Error(`the provider answered ${statusCode}`);
  return wamid;
};

const waiting: Sent[] = [];
let timer: NodeJS.Timeout | undefined;
let storing = false;

const tell = ({ message, wamid }: Sent): void => {
  const { replyTo, correlationId } = message.properties;
  const reply: BareReply = { wamid };
  const body = Buffer.from(JSON.stringify(reply));
  answers.sendToQueue(String(replyTo), body, { correlationId: String(correlationId) });
};

// One group at a time: while a commit is on its way the next group gathers.
const store = async (): Promise<void> => {
  clearTimeout(timer);
  timer = undefined;
  if (storing || waiting.length === 0) return;
  storing = true;
  const group = waiting.splice(0, groupMax);
  const now = Date.now();
  const rows = group.map(({ job, wamid }) => [
    Buffer.from(job.id.replaceAll('-', ''), 'hex'),
    job.phone,
    wamid,
    now,
  ]);
  await database.query('INSERT INTO bare_messages (id, phone, wamid, sent_at) VALUES ?', [rows]);
  for (const sent of group) {
    tell(sent);
    channel.ack(sent.message);
  }
  storing = false;
  if (waiting.length > 0) await store();
};

const handle = async (message: ConsumeMessage): Promise<void> => {
  const job = JSON.parse(message.content.toString()) as BareJob;
  waiting.push({ message, job, wamid: await callProvider(job) });
  if (waiting.length >= groupMax) await store();
  else timer ??= setTimeout(() => void store().catch(fail), groupWaitMs);
};

// Nothing may fail in a benchmark: whatever does ends it, aloud.
const fail = (error: unknown): never => {
  process.stderr.write(`${String(error)}\n`);
  return process.exit(1);
};

await channel.prefetch(prefetch);
await channel.consume(bareQueue, (message) => {
  if (!message) return;
  handle(message).catch(fail);
});
endOnSignal();
sayReady();
