// Addresses that webhooks must not reach: all notations and forms, names that lead there, seen from the socket.
import net from 'node:net';
import test from 'ava';
import sinon from 'sinon';
import { isPublicAddress } from '../../lib/infra/addresses.ts';
import { createOutbound } from '../../lib/infra/outbound.ts';

const blocked = [
  ...['127.0.0.1', '127.1.2.3', '0.0.0.0', '10.0.0.1', '10.255.255.255', '172.16.0.1'],
  ...['172.31.255.255', '192.168.0.1', '169.254.169.254', '169.254.0.1', '100.64.0.1'],
  ...['100.127.255.255', '192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.7', '203.0.113.9'],
  ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', 'fe80::1', 'fc00::1', 'fd12:3456::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::'],
  ...['::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:169.254.169.254', '64:ff9b::7f00:1'],
  ...['64:ff9b::a9fe:a9fe', '64:ff9b::10.0.0.1', '100::1', '2001::1', 'fec0::1'],
];
const open = [
  '1.1.1.1',
  '8.8.8.8',
  '172.15.0.1',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '::ffff:8.8.8.8',
];

test('private, special and disguised addresses are told from public ones', (t) => {
  for (const address of blocked) t.false(isPublicAddress(address), address);
  for (const address of open) t.true(isPublicAddress(address), address);
  t.false(isPublicAddress('not an address'));
});

const hosts = [
  ...blocked.map((address) => (address.includes(':') ? `[${address}]` : address)),
  // The same in other notations, which URLs turn into plain ones, and names that lead home.
  ...['2130706433', '0x7f000001', '0177.0.0.1', '0x7f.1', '127.1', '127.0.1', '0', '0.0.0.0.'],
  ...[
    'localhost',
    'LOCALHOST',
    'localhost.',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '%31%32%37.0.0.1',
  ],
];

test.serial('no connection is attempted to any of them', async (t) => {
  const connect = sinon.spy(net.Socket.prototype, 'connect');
  const outbound = createOutbound({ rules: { open: new Map() }, deadlineMs: 2_000 });
  const wire = (options: { host?: string; path?: string } | undefined) =>
    options?.host ?? options?.path;
  for (const host of hosts) {
    for (const url of [`http://${host}:9/`, `https://${host}/`]) {
      const result = await outbound.post({ accountId: '', url, headers: {}, body: '{}' });
      t.is(result.kind, 'none', url);
      if (result.kind === 'none')
        t.true(
          ['blocked_address', 'bad_url', 'dns'].includes(result.reason),
          `${url}: ${result.reason}`,
        );
    }
  }
  // undici makes the socket and looks the name up from inside connect: what it then dials is what counts.
  const dialled = connect.getCalls().map(({ args }) => wire(args[0] as never));
  t.deepEqual(
    dialled.filter((host) => host !== undefined && net.isIP(host) !== 0),
    [],
  );
  connect.restore();
  await outbound.close();
});
