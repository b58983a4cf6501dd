// The export as a stream: who hangs up ends it, who reads slowly slows it down, and what breaks is not taken for whole.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import test from 'ava';
import { newId } from '../../lib/kernel/ids.ts';
import type { MessageItem } from '../../lib/reports/store.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const lines: string[] = [];

test.before(async () => {
  stack = await startStack('export', { workers: [] });
  const { warn } = stack.api.log;
  stack.api.log.warn = (fields, text) => {
    lines.push(text);
    warn(fields, text);
  };
});
test.after.always(() => stack?.close());

const item = (): MessageItem => ({
  ...{ id: newId(), phone: '+14155550123', country: 'US', origin: 'send', status: 'sent' },
  ...{ channel: 'whatsapp', mode: 'live', plan: 'trial', priceMicros: 0, expiresAt: null },
  ...{ deliveredAt: null, verifiedAt: null, failureReason: null },
});

/** An account with more messages than anybody can read; tells how many pages were read, and breaks after some. */
const endless = ({ breaksAfter = Number.POSITIVE_INFINITY } = {}) => {
  const { reports } = stack.api;
  const { list } = reports;
  const page = Array.from({ length: 1_000 }, item);
  const read = { pages: 0, end: () => void Object.assign(reports, { list }) };
  reports.list = async () => {
    read.pages += 1;
    if (read.pages > breaksAfter) throw new Error('the database is away');
    return page;
  };
  return read;
};

const open = async ({ live }: Customer): Promise<IncomingMessage> => {
  const headers = { authorization: `Bearer ${live.key}` };
  const request = get(`${stack.url}/v1/clients/otps/export`, { headers, agent: false });
  request.on('error', () => undefined);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  return answer;
};

const pause = () => new Promise((resolve) => setTimeout(resolve, 250));

/** Resolves when no page was read for a while. */
const stands = (t: Parameters<typeof eventually>[0], read: { pages: number }) =>
  eventually(
    t,
    async () => {
      const before = read.pages;
      await pause();
      await pause();
      return read.pages === before || undefined;
    },
    20_000,
  );

test.serial(
  'a reader that does not read holds the export up, and goes on where it was',
  async (t) => {
    const read = endless();
    const answer = await open(await stack.customer());
    answer.pause();
    await stands(t, read);
    const held = read.pages;
    answer.resume();
    await eventually(t, () => read.pages > held + 50 || undefined, 20_000);
    answer.destroy();
    await stands(t, read);
    t.pass('and when it hangs up nothing more is read');
    read.end();
  },
);

test.serial('an export that breaks in the middle is broken off, and logged', async (t) => {
  const read = endless({ breaksAfter: 3 });
  const answer = await open(await stack.customer());
  t.is(answer.statusCode, 200);
  let rows = 0;
  answer.on('data', (part: Buffer) => {
    rows += part.toString().split('\r\n').length - 1;
  });
  await new Promise((resolve) => answer.once('close', resolve));
  t.false(answer.complete, 'nobody takes it for whole');
  t.true(rows <= 3_001);
  t.deepEqual(lines, ['export broken off']);
  read.end();
});
