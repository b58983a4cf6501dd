// A private MariaDB or MySQL that a test may set as it likes, and certificates for it.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { EngineContext } from '../../docker/local/engine.ts';
import { createMariadb } from '../../docker/local/mariadb.ts';
import { findPrograms } from '../../docker/local/packages.ts';
import { runCommand } from '../../docker/local/processes.ts';
import { freePort } from './redis-server.ts';

export type DatabaseServer = {
  /** Address of the server's empty database; by name, so that a certificate for localhost fits. */
  url: string;
  /** Ends it and starts it again on the same data with these arguments added. */
  restart(args: readonly string[]): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
};

/** A server on a free port with `args` added to its command line. Throws when none is installed. */
export const startDatabaseServer = async (args: readonly string[]): Promise<DatabaseServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'tessera-mysql-'));
  const password = randomBytes(12).toString('hex');
  const port = await freePort();
  const state = { at: (...parts: string[]) => join(folder, ...parts), secret: () => password };
  const engine = createMariadb({
    state: state as unknown as EngineContext['state'],
    data: folder,
    ports: { mysql: port, redis: 0, amqp: 0, amqpDist: 0, epmd: 0, management: 0 },
    programs: findPrograms('mysql') ?? {},
    management: false,
    durable: false,
  });
  const [program] = engine.programs;
  if (!program) throw new Error('no program');
  const ready = program.ready as () => Promise<void>;
  await engine.prepare(new AbortController().signal);

  const start = async (more: readonly string[]) => {
    const child = spawn(program.file, [...program.args, ...more], {
      env: process.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000);
    });
    const until = Date.now() + program.readyWithinMs;
    for (;;) {
      const problem = await ready().then(
        () => undefined,
        (error: unknown) => error,
      );
      if (problem === undefined) return child;
      if (child.exitCode !== null || Date.now() > until) {
        child.kill('SIGKILL');
        throw new Error(`the database server did not start: ${said}`, { cause: problem });
      }
      await delay(50);
    }
  };

  let running = await start(args);
  const end = async (): Promise<void> => {
    if (running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, 'exit');
    running.kill('SIGTERM');
    await gone;
  };
  return {
    url: `mysql://tessera:${password}@localhost:${port}/tessera`,
    restart: async (more) => {
      await end();
      running = await start(more);
    },
    stop: async () => {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

export type Certificates = {
  /** PEM files: an authority, a server's certificate that it signed for localhost, and that one's key. */
  ca: string;
  certificate: string;
  key: string;
  /** An authority that signed nothing here. */
  otherCa: string;
  /** A server's certificate that the first authority signed for another host. */
  elsewhere: string;
  remove(): Promise<void>;
};

const openssl = async (...args: string[]): Promise<void> => {
  const done = await runCommand('openssl', args);
  if (done.code !== 0) throw new Error(`openssl ${args[0]} failed:\n${done.output}`);
};

/** Makes the certificates with openssl, good for a day. */
export const makeCertificates = async (): Promise<Certificates> => {
  const folder = await mkdtemp(join(tmpdir(), 'tessera-tls-'));
  const at = (name: string): string => join(folder, name);
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const makeCa = (name: string) =>
    openssl(
      ...['req', '-x509', ...curve, '-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)],
      ...['-days', '1', '-subj', `/CN=${name}`],
    );
  const sign = (name: string, host: string) =>
    openssl(
      ...['req', '-x509', '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-days', '1'],
      ...['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`],
      ...['-addext', 'basicConstraints=critical,CA:FALSE'],
      ...['-key', at('server.key'), '-out', at(`${name}.pem`)],
    );
  await makeCa('ca');
  await makeCa('other');
  await openssl(
    ...['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
    ...['-out', at('server.key')],
  );
  await sign('server', 'localhost');
  await sign('elsewhere', 'db.example');
  return {
    ca: at('ca.pem'),
    certificate: at('server.pem'),
    key: at('server.key'),
    otherCa: at('other.pem'),
    elsewhere: at('elsewhere.pem'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
};
