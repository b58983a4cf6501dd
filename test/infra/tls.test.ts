// Redis and RabbitMQ over TLS: what goes out is encrypted, and goes only to a server whose certificate is vouched for.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { type Certificates, makeCertificates } from '../support/mariadb-server.ts';

let certificates: Certificates;
test.before(async () => {
  certificates = await makeCertificates();
});
test.after.always(() => certificates?.remove());

const connecting = `
  import { createConnection } from ${JSON.stringify(import.meta.resolve('../../lib/infra/queue/connection.ts'))};
  import { createRedis } from ${JSON.stringify(import.meta.resolve('../../lib/infra/redis.ts'))};
  import { silentLog as log } from ${JSON.stringify(import.meta.resolve('../../lib/kernel/log.ts'))};
  const url = process.env.ENGINE_URL;
  if (url.startsWith('rediss:')) createRedis({ url, log });
  else {
    const nothing = () => undefined;
    const setup = () => Promise.resolve();
    void createConnection({ urls: [url], name: 'tls', log, setup, lost: nothing, onReconnect: nothing }).start();
  }`;

/** What a process that is told to trust `authority` first says to a TLS server on localhost, or why it hangs up. */
const firstWords = async (
  t: ExecutionContext,
  { scheme, authority, certificate }: { scheme: string; authority?: string; certificate: string },
): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const [cert, key] = [certificate, certificates.key].map((path) => readFileSync(path));
  const server = createServer({ cert, key }, (socket) => {
    socket.on('error', (error) => resolve(`no word: ${error.message}`));
    socket.on('close', () => resolve('no word'));
    socket.once('data', (data) => resolve(data.toString('latin1')));
  });
  server.on('tlsClientError', (error) => resolve(`no word: ${error.message}`));
  await new Promise<void>((listening) => server.listen(0, 'localhost', listening));
  const { port } = server.address() as AddressInfo;
  const child = spawn(process.execPath, ['--input-type=module', '-e', connecting], {
    env: {
      PATH: process.env.PATH,
      ENGINE_URL: `${scheme}://user:password@localhost:${port}/`,
      ...(authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: authority }),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  t.teardown(() => {
    child.kill('SIGKILL');
    server.close();
  });
  return promise;
};

const words: Record<string, RegExp> = { rediss: /auth.*password/is, amqps: /^AMQP\0/ };

test('rediss:// and amqps:// encrypt, and speak to no server whose certificate nobody vouches for', async (t) => {
  const { certificate, elsewhere, ca: authority, otherCa } = certificates;
  for (const scheme of Object.keys(words)) {
    t.regex(await firstWords(t, { scheme, certificate }), /^no word/, scheme);
    const other = { scheme, certificate, authority: otherCa };
    t.regex(await firstWords(t, other), /^no word/, `${scheme}: another authority`);
    const misplaced = { scheme, certificate: elsewhere, authority };
    t.regex(await firstWords(t, misplaced), /^no word/, `${scheme}: another host`);
  }
});

test('an authority in NODE_EXTRA_CA_CERTS vouches for Redis and RabbitMQ', async (t) => {
  const { certificate, ca: authority } = certificates;
  for (const [scheme, expected] of Object.entries(words)) {
    t.regex(await firstWords(t, { scheme, certificate, authority }), expected, scheme);
  }
});
