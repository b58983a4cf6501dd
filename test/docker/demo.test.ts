// The demo of the compose file: its account's webhooks reach the receiver page, which can verify them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { requireCallable } from '../../lib/infra/addresses.ts';
import { openHosts } from '../../lib/kernel/open-hosts.ts';

const docker = join(import.meta.dirname, '../../docker');
const read = (name: string): string => readFileSync(join(docker, name), 'utf8');

const settings = new Map<string, string>(
  read('demo.env')
    .split('\n')
    .flatMap((line) => {
      const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value] as [string, string]];
    }),
);

const serviceOf = (name: string): string =>
  new RegExp(`^  ${name}:\\n((?: {4}.*\\n|\\n)*)`, 'm').exec(read('compose.yml'))?.[1] ?? '';

test('the address of the demo account is the receiver of the simulators, and may be called', (t) => {
  const url = new URL(settings.get('RECEIVER_URL') ?? '');
  t.is(url.hostname, 'sim');
  t.is(url.port, settings.get('SIM_PORT') ?? '');
  t.is(url.pathname, '/receiver');
  const { value: open } = openHosts().validate(settings.get('WEBHOOK_ALLOWED_HOSTS'));
  t.notThrows(() => requireCallable(url, 'any account', { open }));
});

test('the receiver finds the secret where the seed leaves it', (t) => {
  for (const name of ['sim', 'seed']) t.regex(serviceOf(name), /TESSERA_STATE: \/secrets\n/, name);
});
