// The stack as a newcomer starts it: with the first line of the quickstart, on engines of the tests.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '../support/databases.ts';
import { testUrl, uniqueName } from '../support/names.ts';
import { createVhost } from '../support/vhosts.ts';

export type Started = {
  /** What it printed, up to its last line. */
  said: string;
  /** The address of the API, as it was printed. */
  url: string;
  /** Ends it with Ctrl-C; resolves to its exit code. */
  stop(): Promise<number | null>;
};

const lastLine = 'Ctrl-C ends everything.';

/** Runs `command` at the top of the repository with any free ports. @throws Error when it ends by itself */
export const startBy = async (command: string): Promise<Started> => {
  const [database, vhost] = await Promise.all([createDatabase('started'), createVhost('started')]);
  const folder = mkdtempSync(join(tmpdir(), 'tessera-started-'));
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('sh', ['-c', `exec ${command}`], {
    cwd: join(import.meta.dirname, '../..'),
    env: {
      ...{ PATH, HOME, TESSERA_STATE: folder, PORT: '0', OPS_PORT: '0', SIM_PORT: '0' },
      ...{ MYSQL_URL: database.url, AMQP_URL: vhost.url },
      REDIS_URL: testUrl('TESSERA_TEST_REDIS_URL').href,
      KEY_PREFIX: `${uniqueName('s').replaceAll('_', '-').slice(-16)}:`,
    },
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const stop: Started['stop'] = async () => {
    child.kill('SIGINT');
    const [code] = await ended;
    await Promise.all([database.drop(), vhost.drop()]);
    rmSync(folder, { recursive: true, force: true });
    return code;
  };
  let said = '';
  let complained = '';
  child.stderr.on('data', (piece) => {
    complained += piece;
  });
  for await (const piece of child.stdout) {
    said += piece;
    const [, url] = /Public API +(http:\S+)/.exec(said) ?? [];
    if (url && said.includes(lastLine)) return { said, url, stop };
  }
  await stop();
  throw new Error(`${command} ended by itself: ${said}${complained}`);
};
