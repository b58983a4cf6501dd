// Channels, the platform, messages and the books on the command line.
import type { Answered } from './client.ts';
import { CommandError, exitCodes } from './client.ts';
import { type Command, type Given, type Outcome, pathTo, textOf, toNumber } from './command.ts';
import { type Cell, facts, table } from './table.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of our own listener, shown as they are
type Row = Record<string, any>;
const itemsOf = (data: Answered): Row[] => data.items as Row[];
const percent = (share: number | null): string =>
  share === null ? '-' : `${(share * 100).toFixed(1)}%`;

/** Every part of the list, one after the other. */
const allChannels = async (client: Given['client']): Promise<Answered> => {
  const items: Row[] = [];
  let before = '';
  do {
    const data = await client.get(`/channels?limit=200${before && `&before=${before}`}`);
    items.push(...itemsOf(data));
    before = (data.next_before as string | null) ?? '';
  } while (before !== '');
  // One in trouble stands before the others and is not told again.
  return { items: [...new Map(items.map((one) => [one.id, one])).values()] };
};

const channels: Command = {
  name: 'channels',
  usage: '',
  about: 'WhatsApp (shared and connected numbers) and Telegram in the last hour.',
  run: async ({ client }) => {
    const data = await allChannels(client);
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.channel, one.kind, one.id, one.status, one.last_hour?.calls],
      ...[
        percent(one.last_hour?.success_rate ?? null),
        one.last_hour?.p50_ms,
        one.last_hour?.p95_ms,
      ],
      one.quality_rating,
      (one.last_hour?.errors ?? [])
        .map((error: Row) => `${error.class}/${error.code} ${error.count}`)
        .join(', ') || null,
    ]);
    const titles = [
      'CHANNEL',
      'KIND',
      'NUMBER',
      'STATUS',
      'CALLS',
      'SUCCESS',
      'P50 MS',
      'P95 MS',
      'QUALITY',
      'ERRORS',
    ];
    return { data, text: table(titles, rows) };
  },
};

const pausing = (name: 'pause' | 'resume', about: string): Command => ({
  name,
  usage: 'whatsapp|telegram',
  about,
  least: 1,
  options: {
    number: { type: 'string', about: 'only this number of WhatsApp' },
    note: { type: 'string', about: 'why, for the audit log' },
  },
  run: async ({ client, words: [channel], values }) => {
    const [number, note] = [textOf(values, 'number'), textOf(values, 'note')];
    const body = { channel, ...(number && { number }), ...(note && { note }) };
    const data = await client.post(`/channels/${name}`, body);
    return {
      data,
      text: `${channel}${number ? ` ${number}` : ''}: ${data.paused ? 'paused' : 'sends'}\n`,
    };
  },
});

const booksText = (books: Row | null): string => {
  if (books === null) return 'not compared yet';
  return `${books.mismatches === 0 ? 'agreed' : `${books.mismatches} mismatches`} at ${books.at}`;
};

const platform: Command = {
  name: 'platform',
  usage: '',
  about: 'Switches, prices, and the guard against pumping.',
  run: async ({ client }) => {
    const data = await client.get('/platform');
    const { switches, prices, pumping_guard: guard } = data as Row;
    const text = [
      table(
        ['SWITCH', 'PAUSED', 'SINCE'],
        switches.map((one: Row) => [one.name, one.paused, one.since]),
      ),
      facts([
        ['guard against pumping', guard.mode],
        ['held prefixes', guard.held?.length ?? 'not known: Redis is away'],
        ['books', booksText((data as Row).books)],
        ['price elsewhere', (data as Row).default_price],
      ]),
      table(
        ['HELD', 'ACCOUNT', 'WHY', 'SENT', 'VERIFIED', 'ACCOUNTS', 'TOGETHER', 'UNTIL'],
        (guard.held ?? []).map((one: Row) => [
          ...[one.prefix ?? `all of ${one.country}`, one.account_id],
          ...[one.early ? `${one.reason}, early` : one.reason, one.settled, one.verified],
          ...[
            one.together.accounts,
            `${one.together.settled}, ${one.together.verified}`,
            one.until,
          ],
        ]),
      ),
      table(
        ['COUNTRY', 'USD', 'COST'],
        prices.map((one: Row) => [one.country, one.price, one.cost]),
      ),
    ];
    return { data, text: text.join('\n') };
  },
};

const change: Command = {
  name: 'switch',
  usage: 'shared_number|trial on|off',
  about: 'Lets the shared number or the trial go on for everybody, or pauses it.',
  least: 2,
  run: async ({ client, words: [name, state] }) => {
    if (state !== 'on' && state !== 'off') {
      throw new CommandError('switch: on or off?', exitCodes.usage);
    }
    const data = await client.post('/platform/switch', { name, paused: state === 'off' });
    return { data, text: `${name}: ${state}\n` };
  },
};

const countries: Command = {
  name: 'countries',
  usage: 'all|default|DE,FR,…',
  about: 'Countries the shared number serves; default: those of the environment.',
  least: 1,
  run: async ({ client, words: [which = ''] }) => {
    const chosen = which === 'all' ? [] : which.toUpperCase().split(',');
    const wanted = which === 'default' ? null : chosen;
    const data = await client.post('/platform/countries', { countries: wanted });
    return { data, text: `${(data.shared_countries as string[]).join(', ') || 'all'}\n` };
  },
};

const guard: Command = {
  name: 'guard',
  usage: 'off|shadow|enforce|default',
  about: 'How the guard against pumping works; default: as the environment says.',
  least: 1,
  run: async ({ client, words: [mode = ''] }) => {
    const data = await client.post('/platform/guard', { mode: mode === 'default' ? null : mode });
    return { data, text: `${(data.pumping_guard as Row).mode}\n` };
  },
};

const timeline = async ({ client }: Given, id: string): Promise<Outcome> => {
  const data = await client.get(pathTo`/messages/${id}`);
  const message = data.message as Row;
  const steps = (data.steps as Row[]).map((one): Cell[] => [
    one.at,
    one.type,
    one.channel,
    one.reason,
  ]);
  const head = facts([
    ...([
      ['message', message.message_id],
      ['account', message.account_id],
    ] as const),
    ...([
      ['phone', message.phone],
      ['status', message.status],
      ['request', message.request_id],
    ] as const),
  ]);
  return { data, text: `${head}\n${table(['AT', 'STEP', 'CHANNEL', 'REASON'], steps)}` };
};

const priceRow = (data: Row, country: string): string => {
  const one = (data.prices as Row[]).find((each) => each.country === country);
  return table(['COUNTRY', 'USD', 'COST'], [[country, one?.price, one?.cost]]);
};

const price: Command = {
  name: 'platform price',
  usage: 'COUNTRY USD|none COST',
  about: 'Price and cost of a country for everybody; none: not sold.',
  least: 3,
  run: async ({ client, words: [country = '', usd = '', cost = ''] }) => {
    const body = {
      country,
      price: usd === 'none' ? null : toNumber(usd, 'USD'),
      cost: toNumber(cost, 'COST'),
    };
    const data = (await client.post('/platform/price', body)) as Row;
    return { data, text: priceRow(data, country) };
  },
};

const priceDefault: Command = {
  name: 'platform price-default',
  usage: 'COUNTRY',
  about: 'Takes the price of a country away: it is sold at the price for everywhere.',
  least: 1,
  run: async ({ client, words: [country = ''] }) => {
    const data = (await client.post('/platform/price/remove', { country })) as Row;
    return { data, text: priceRow(data, country) };
  },
};

const channelStates = (channels: Row | null): Cell[][] =>
  Object.entries(channels ?? {}).map(([name, { status, since }]) => [name, status, null, since]);

const health: Command = {
  name: 'health',
  usage: '',
  about:
    'Whether the engines answer and the channels send; exit code 1 when sends are not possible.',
  run: async ({ client }) => {
    const data = await client.get('/health');
    const engines = Object.entries(data.checks as Row).map(([name, { status, latency_ms: ms }]) => [
      ...[name, status, ms, null],
    ]);
    const rows = [...engines, ...channelStates(data.channels as Row | null)];
    return {
      data,
      text: table(['WHAT', 'STATE', 'MS', 'SINCE'], rows),
      ok: data.can_send === true,
    };
  },
};

const message: Command = {
  name: 'message',
  free: true,
  usage: 'ID|PHONE|REQUEST',
  about: 'Messages by id, phone number or request id; one alone with its timeline.',
  least: 1,
  run: async (given) => {
    const data = await given.client.post('/messages/search', { q: given.words.join(' ') });
    const found = itemsOf(data);
    if (found.length === 0) throw new CommandError('No such message.');
    const [first] = found;
    if (found.length === 1 && first) return timeline(given, first.message_id);
    const rows = found.map((one): Cell[] => [
      ...[one.message_id, one.created_at, one.phone, one.status, one.channel, one.failure_reason],
    ]);
    return {
      data,
      text: table(['MESSAGE', 'CREATED', 'PHONE', 'STATUS', 'CHANNEL', 'REASON'], rows),
    };
  },
};

const reconcile: Command = {
  name: 'reconcile',
  usage: '',
  about: 'Proves the books; exit code 1 when they do not agree.',
  run: async ({ client }) => {
    const data = await client.post('/reconcile');
    const rows = (data.differences as Row[]).map((one): Cell[] => [
      one.check,
      one.account_id,
      one.detail,
    ]);
    const head = `${data.accounts} accounts, through ${data.through}: ${data.agree ? 'the books agree' : `${data.difference_count} differences`}\n`;
    const text = rows.length > 0 ? head + table(['NOT SO', 'ACCOUNT', 'DETAIL'], rows) : head;
    return { data, text, ok: data.agree === true };
  },
};

const resealText = (data: Row, resealed: number, failed: number): string => {
  const rows = (data.left as Row[]).map((one): Cell[] => [one.what, one.keys, one.count]);
  const head = `${resealed} secrets resealed, ${failed} could not be opened\n`;
  if (rows.length > 0)
    return head + table(['STILL UNDER AN OLDER KEY', 'SETTING', 'HOW MANY'], rows);
  return `${head}Everything at rest is under the newest keys. An older key may be taken out of SEALING_KEYS and TOTP_KEYS an hour from now: codes under way are sealed, too.\n`;
};

const reseal: Command = {
  name: 'reseal',
  usage: '',
  about:
    'Seals every secret at rest under the newest key; may be stopped and repeated. Exit code 1 when an older key is still needed.',
  run: async ({ client, say }) => {
    let [resealed, failed] = [0, 0];
    let after: string | null = null;
    for (;;) {
      const data: Row = await client.post('/secrets/reseal', after === null ? {} : { after });
      resealed += Number(data.resealed);
      failed += Number(data.failed);
      after = data.next as string | null;
      if (after === null) {
        const ok = (data.left as Row[]).length === 0;
        const text = resealText(data, resealed, failed);
        return { data: { resealed, failed, left: data.left }, text, ok };
      }
      say(`${resealed} secrets resealed so far`);
    }
  },
};

export const platformCommands: readonly Command[] = [
  channels,
  pausing('pause', 'Sends nothing more over a channel, or over one number.'),
  pausing('resume', 'Lets it send again.'),
  ...[price, priceDefault, platform, change, countries, guard, health, message, reconcile, reseal],
];
