// Calls to customers' addresses: the 60 and more that must not be reached, seen from the socket; names that change; and
// receivers that drip, flood, hang or reset, in time and memory.
import net from 'node:net';
import test from 'ava';
import sinon from 'sinon';
import { parseRange } from '../../lib/infra/addresses.ts';
import { createOutbound } from '../../lib/infra/outbound.ts';
import type { Resolve } from '../../lib/infra/safe-connect.ts';
import type { OpenHosts } from '../../lib/kernel/open-hosts.ts';
import { receive } from '../support/receivers.ts';

const event = JSON.stringify({
  ...{ id: `evt_${'0'.repeat(32)}`, type: 'webhook.test', timestamp: new Date().toISOString() },
  ...{ mode: 'live', data: { message: 'x', sequence: 1 } },
});

/** Every address that sockets were told to dial while `run` ran. */
const dialled = async (run: () => Promise<void>): Promise<string[]> => {
  const connect = sinon.spy(net.Socket.prototype, 'connect');
  const lookedUp: string[] = [];
  try {
    await run();
    for (const { args } of connect.getCalls()) {
      const [first] = args as unknown as [{ host?: string }[] | { host?: string }];
      const options = Array.isArray(first) ? first[0] : first;
      if (options?.host && net.isIP(options.host) !== 0) lookedUp.push(options.host);
    }
    // Names are dialled by what the look-up answered: a socket that has a peer has connected.
    for (const socket of connect.thisValues as net.Socket[]) {
      if (socket.remoteAddress) lookedUp.push(socket.remoteAddress);
    }
    return lookedUp;
  } finally {
    connect.restore();
  }
};

const accountId = '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';
const closed: OpenHosts = new Map();
const openTo = (...hosts: string[]): OpenHosts =>
  new Map(hosts.map((host) => [host, new Set([accountId])]));

const literals = [
  // IPv4: loopback, private, link-local with metadata, carrier NAT, special, multicast, reserved.
  ...[
    '127.0.0.1',
    '127.255.255.254',
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
  ],
  ...[
    '192.168.0.1',
    '169.254.169.254',
    '169.254.170.2',
    '100.64.0.1',
    '100.100.100.200',
    '192.0.0.192',
  ],
  ...[
    '192.0.2.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.7',
    '203.0.113.9',
    '224.0.0.1',
    '240.0.0.1',
  ],
  ...['255.255.255.255', '168.63.129.16'],
  // Other notations of the same.
  ...['2130706433', '0x7f000001', '0177.0.0.1', '0x7f.1', '127.1', '127.0.1', '0', '017700000001'],
  ...[
    '0xa9fea9fe',
    '2852039166',
    '0251.0376.0251.0376',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
  ],
  // IPv6 and IPv4 inside it.
  ...[
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[fe80::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[ff02::1]',
  ],
  ...[
    '[fec0::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[2002:7f00:1::]',
    '[2001::1]',
    '[2001:2::1]',
    '[100::1]',
  ],
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:169.254.169.254]',
    '[::127.0.0.1]',
    '[::a9fe:a9fe]',
  ],
  ...[
    '[64:ff9b::7f00:1]',
    '[64:ff9b::8.8.8.8]',
    '[64:ff9b:1::1]',
    '[::2]',
    '[4000::1]',
    '[1234::1]',
  ],
  ...['[100:0:0:1::1]', '[5f00::1]'],
];
const names = [
  ...['localhost', 'LOCALHOST', 'localhost.', 'foo.localhost', 'printer.local', 'redis', 'mysql'],
  ...['metadata.google.internal', 'router.lan', 'nas.home.arpa', 'intra.intranet', 'example.com.'],
  ...[
    'mysql.default.svc',
    'mysql.default.svc.cluster.local',
    'wiki.corp',
    'tv.home',
    'box.private',
  ],
];

const hooks: Resolve = async (hostname) => {
  const answers: Record<string, string[]> = {
    'private.example': ['10.1.2.3'],
    'loop.example': ['127.0.0.1'],
    'metadata.example': ['169.254.169.254'],
    'six.example': ['::1'],
    'mapped.example': ['::ffff:192.168.0.1'],
    'mixed.example': ['1.1.1.1', '192.168.1.1'],
    'denied.example': ['198.41.0.4'],
  };
  const found = answers[hostname];
  if (!found) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  return found.map((address) => ({ address, family: net.isIP(address) }));
};

test.serial(
  'no connection is attempted to what is written as an address we do not call',
  async (t) => {
    const urls = [
      ...[...literals, ...names].map((host) => `https://${host}/hook`),
      ...[
        'https://user:pw@example.com/',
        'http://example.com/',
        'https://[::1',
        'https://',
        'ftp://example.com/',
      ],
      ...['https://1.1.1.1:22/', 'https://8.8.8.8:6379/'],
    ];
    t.true(urls.length >= 80);
    const rules = { open: closed, ports: new Set([443, 8443]) };
    const guarded = createOutbound({ rules, deadlineMs: 2_000 });
    const reached = await dialled(async () => {
      for (const url of urls) {
        const result = await guarded.post({ accountId, url, headers: {}, body: event });
        t.is(result.kind, 'none', url);
        t.true(
          result.kind === 'none' && ['blocked_address', 'bad_url'].includes(result.reason),
          `${url}: ${result.kind === 'none' && result.reason}`,
        );
      }
    });
    t.deepEqual(reached, []);
    await guarded.close();
  },
);

test.serial(
  'no connection is attempted to names that lead to such addresses, one of several included',
  async (t) => {
    const rules = { open: closed, denied: [parseRange('198.41.0.0/24')] };
    const outbound = createOutbound({ rules, deadlineMs: 2_000, resolve: hooks });
    const reached = await dialled(async () => {
      for (const name of ['private', 'loop', 'metadata', 'six', 'mapped', 'mixed', 'denied']) {
        const result = await outbound.post({
          accountId,
          url: `https://${name}.example/hook`,
          headers: {},
          body: event,
        });
        t.like(result, { kind: 'none', reason: 'blocked_name' }, name);
      }
      const unknown = await outbound.post({
        accountId,
        url: 'https://unknown.example/hook',
        headers: {},
        body: event,
      });
      t.like(unknown, { kind: 'none', reason: 'dns' });
    });
    t.deepEqual(reached, []);
    await outbound.close();
  },
);

test.serial(
  'of a name that changes, the socket gets what was checked, and nothing when that is bad',
  async (t) => {
    let lookups = 0;
    const changing: Resolve = async () => {
      lookups += 1;
      return [{ address: lookups === 1 ? '1.1.1.1' : '127.0.0.1', family: 4 }];
    };
    const outbound = createOutbound({
      rules: { open: closed },
      ...{ deadlineMs: 500, resolve: changing },
    });
    const handed: unknown[] = [];
    const perAddress: unknown[] = [];
    // Asks the look-up as a socket does, and dials nobody: nothing leaves the machine in tests.
    const connect = sinon.stub(net.Socket.prototype, 'connect').callsFake(function (
      this: net.Socket,
      ...args: unknown[]
    ) {
      const [options] = args.flat() as [net.TcpSocketConnectOpts];
      perAddress.push(options.autoSelectFamilyAttemptTimeout);
      options.lookup?.(options.host ?? '', { all: true }, (error, found) => {
        handed.push(error ? (error as { code?: string }).code : found);
        this.destroy(error ?? new Error('no network in tests'));
      });
      return this;
    });
    t.like(
      await outbound.post({
        accountId,
        url: 'https://changing.example/hook',
        headers: {},
        body: event,
      }),
      {
        kind: 'none',
        reason: 'reset',
      },
    );
    t.like(
      await outbound.post({
        accountId,
        url: 'https://changing.example/hook',
        headers: {},
        body: event,
      }),
      {
        kind: 'none',
        reason: 'blocked_name',
      },
    );
    connect.restore();
    t.deepEqual(handed, [[{ address: '1.1.1.1', family: 4 }], 'BLOCKED_NAME']);
    t.is(lookups, 2, 'one look-up for each connection');
    t.deepEqual(perAddress, [1_500, 1_500], 'long enough for the way around the earth and back');
    await outbound.close();
  },
);

test.serial(
  'a host on the list of the operator is reached; the metadata services never are',
  async (t) => {
    const receiver = await receive();
    const port = new URL(receiver.url).port;
    const open = openTo(`127.0.0.1:${port}`, '169.254.169.254', '[fd00:ec2::254]');
    const outbound = createOutbound({ rules: { open }, deadlineMs: 20_000 });
    t.like(await outbound.post({ accountId, url: receiver.url, headers: {}, body: event }), {
      kind: 'answer',
      status: 200,
    });
    const reached = await dialled(async () => {
      for (const url of [
        'http://169.254.169.254/latest',
        'http://127.0.0.1:9/',
        'http://localhost:9/',
      ])
        t.is((await outbound.post({ accountId, url, headers: {}, body: event })).kind, 'none', url);
    });
    t.deepEqual(reached, []);
    receiver.close();
    await outbound.close();
  },
);

test.serial('a host that is open to one account is reached by no other', async (t) => {
  const receiver = await receive();
  const { host } = new URL(receiver.url);
  const outbound = createOutbound({ rules: { open: openTo(host) }, deadlineMs: 20_000 });
  const post = (by: string) =>
    outbound.post({ accountId: by, url: receiver.url, headers: {}, body: event });
  t.like(await post(accountId), { kind: 'answer', status: 200 });
  const other = accountId.replace('01', '02');
  t.deepEqual(
    await dialled(async () => {
      t.like(await post(other), { kind: 'none', reason: 'blocked_address' });
    }),
    [],
  );
  t.is(receiver.calls.length, 1);
  receiver.close();
  await outbound.close();
});

test.serial('a redirect is an answer like any other: nothing goes where it points', async (t) => {
  for (const location of [
    'http://169.254.169.254/',
    'http://127.0.0.1:9/',
    'https://[::1]/',
    '//10.0.0.1/',
  ]) {
    const receiver = await receive((response) => response.writeHead(302, { location }).end());
    const outbound = createOutbound({
      rules: { open: openTo('127.0.0.1') },
      deadlineMs: 20_000,
    });
    const reached = await dialled(async () => {
      t.like(await outbound.post({ accountId, url: receiver.url, headers: {}, body: event }), {
        kind: 'answer',
        status: 302,
      });
    });
    t.deepEqual([...new Set(reached)], ['127.0.0.1']);
    t.is(receiver.calls.length, 1);
    receiver.close();
    await outbound.close();
  }
});

test.serial(
  'dripping, huge, never-ending and resetting receivers end in time and in bounded memory',
  async (t) => {
    // Long enough for the first bytes of the others on a slow machine.
    const deadlineMs = 2_000;
    const chunk = Buffer.alloc(256 * 1024);
    const dripping = await receive((response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 50);
      response.on('close', () => clearInterval(timer));
    });
    const drippingHead = await receive((response) => {
      const { socket } = response;
      const timer = setInterval(() => socket?.write('H'), 50);
      response.on('close', () => clearInterval(timer));
    });
    const endless = await receive((response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const huge = await receive((response) => response.writeHead(500).end(Buffer.alloc(20_000_000)));
    const resetting = await receive((response) => response.socket?.resetAndDestroy());
    const silent = await receive(() => undefined);
    const outbound = createOutbound({ rules: { open: openTo('127.0.0.1') }, deadlineMs });
    const expected = [
      [dripping, { kind: 'none', reason: 'timeout' }],
      [drippingHead, { kind: 'none' }],
      [endless, { kind: 'answer', status: 200 }],
      [huge, { kind: 'answer', status: 500 }],
      [resetting, { kind: 'none', reason: 'reset' }],
      [silent, { kind: 'none', reason: 'timeout' }],
    ] as const;
    const before = process.memoryUsage();
    await Promise.all(
      expected.map(async ([{ url }, wanted]) => {
        const startedAt = performance.now();
        t.like(await outbound.post({ accountId, url, headers: {}, body: event }), wanted);
        t.true(performance.now() - startedAt < deadlineMs + 20_000, url);
      }),
    );
    const after = process.memoryUsage();
    t.true(after.external + after.heapUsed - before.external - before.heapUsed < 100_000_000);
    for (const [receiver] of expected) receiver.close();
    await outbound.close();
  },
);
