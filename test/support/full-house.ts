// A platform that has been in use for long, for tests of pages: accounts, processes, audit lines and dead letters in numbers.
import { connect } from 'amqplib';
import { idAt, idBytes, newId } from '../../lib/kernel/ids.ts';
import type { Ops } from './ops.ts';
import type { Stack } from './stack.ts';

const names = [
  'شركة النور للتجارة الإلكترونية والخدمات اللوجستية المحدودة بالرياض والدمام',
  'Aktiengesellschaft für internationale Verständigungstechnologiedienstleistungen Süd',
  'Acme',
  'O’Brien & <Sons> "Quoted"',
  'Anverylongnamewithoutanyspaceinitthatgoesonandonuntilitisahundredcharacterslongandthenstopsatlast',
  'متجر سارة',
];

/** The name of the nth of them. */
export const nameAt = (n: number): string => `${names[n % names.length]} ${n}`.slice(0, 100);

const longError =
  'ER_LOCK_WAIT_TIMEOUT: Lock wait timeout exceeded; try restarting transaction (statement: UPDATE messages SET status = ?, failed_at = ? WHERE id = ? AND status IN (?, ?)) at pool-connection-with-a-very-long-name-that-has-no-space-in-it-anywhere-7f3a9b2c';

/** Copies of the account `like` under other names; the newest has the highest number. */
export const addAccounts = async (
  { api }: Pick<Stack, 'api'>,
  like: string,
  count: number,
): Promise<void> => {
  const [row] = await api.db('accounts').where({ id: idBytes(like) });
  const rows = Array.from({ length: count }, (_, n) => ({
    ...row,
    ...{ id: idBytes(newId()), name: nameAt(n), company: n % 2 ? nameAt(n + 1) : null },
    ...{ email: `a.rather.long.address.${n}@mail.customer-${n}.example` },
    email_key: `a.rather.long.address.${n}@mail.customer-${n}.example`,
  }));
  await api.db.batchInsert('accounts', rows, 100);
};

/** Lines of the audit log, one a minute until `now`. */
export const addAudit = async (
  { api }: Pick<Stack, 'api'>,
  given: { count: number; now: number; subject: string },
): Promise<void> => {
  const { count, now, subject } = given;
  const rows = Array.from({ length: count }, (_, n) => {
    const at = now - (count - n) * 60_000;
    const redrives = n % 3 === 0;
    return {
      ...{ id: idBytes(idAt(at)), actor: n % 5 ? 'Ada Lovelace' : 'noor@tessera.example' },
      ...{ action: redrives ? 'dead.redrive' : 'account.suspend' },
      subject: redrives ? 'webhook.dispatch' : subject,
      detail: JSON.stringify(
        redrives
          ? { ids: Array.from({ length: 40 }, () => '0123456789abcdef'), per_second: 200 }
          : { reason: nameAt(n) },
      ),
      ...{ affected: n, status: n % 7 ? 'done' : 'failed', error: n % 7 ? null : longError },
      ...{ request_id: `req_${n}`, updated_at: at },
    };
  });
  await api.db.batchInsert('ops_audit', rows, 200);
};

/** Processes that say they are there; every fourth has lost an engine. */
export const addProcesses = async ({ app }: Ops, count: number): Promise<void> => {
  const [like] = await app.pulses.readPulses();
  if (!like) throw new Error('no process has reported yet');
  await Promise.all(
    Array.from({ length: count }, (_, n) => {
      const host = `worker-${n}.a-rather-long-host-name.eu-central-1.internal`;
      const connected = { redis: true, rabbitmq: n % 4 !== 0, mysql: true };
      const id = `${like.name}@${host}:${1_000 + n}`;
      return app.pulses.beat({ ...like, id, host, pid: 1_000 + n, connected, metrics: [] });
    }),
  );
};

/** Dead letters of a job, the oldest an hour old; `payloadAt` makes the nth payload. */
export const addLetters = async (
  { config }: Pick<Stack, 'config'>,
  job: string,
  count: number,
  payloadAt: (n: number) => unknown = (n) => ({ no: n, text: longError }),
): Promise<void> => {
  const broker = await connect(config.amqpUrls);
  const channel = await broker.createConfirmChannel();
  const now = Date.now();
  for (let n = 0; n < count; n++) {
    const deadAt = now - 3_600_000 + n * 1_000;
    channel.publish('dead', job, Buffer.from(JSON.stringify(payloadAt(n))), {
      ...{ persistent: true, messageId: newId() },
      headers: {
        ...{ attempt: 3, first_published: deadAt - 9_000, failed_at: deadAt, queue: job },
        ...{ first_failed_at: deadAt - 5_000, request_id: `req_${newId()}` },
        reason: n % 4 === 0 ? 'malformed_payload' : 'attempts_exhausted',
        ...{ first_error: n % 2 ? longError : 'RedisUnavailable', last_error: longError },
      },
    });
  }
  await channel.waitForConfirms();
  await broker.close();
};
