// Accounts on the command line: found, suspended, credited, priced, and their requests for capacity.
import { randomUUID } from 'node:crypto';
import type { Answered } from './client.ts';
import { CommandError, exitCodes } from './client.ts';
import { type Command, numberOf, type Outcome, pathTo, textOf, toNumber } from './command.ts';
import { type Cell, facts, table } from './table.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of our own listener, shown as they are
type Row = Record<string, any>;
const itemsOf = (data: Answered): Row[] => data.items as Row[];
const accounts: Command = {
  name: 'accounts',
  free: true,
  usage: '[WORD]',
  about: 'Accounts by id, beginning of e-mail address or phone, or part of name or company.',
  options: { limit: { type: 'string', about: 'how many (50)' } },
  run: async ({ client, words, values }) => {
    const limit = numberOf(values, 'limit') ?? 50;
    const data = await client.post('/accounts/search', { q: words.join(' '), limit });
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.id, one.email, one.name, one.status, one.plan, one.balance],
    ]);
    return { data, text: table(['ID', 'E-MAIL', 'NAME', 'STATUS', 'PLAN', 'USD'], rows) };
  },
};

const accountText = (one: Row): string =>
  facts([
    ...([
      ['id', one.id],
      ['e-mail', one.email],
      ['name', one.name],
    ] as const),
    ...([
      ['status', one.status],
      ['reason', one.suspended_reason],
    ] as const),
    ...([
      ['plan', one.plan],
      ['balance', one.balance],
    ] as const),
    ['trial left', one.billing.trial_remaining],
    ['spent this hour', one.billing.spent_this_hour],
    ['shared number', one.shared_number_paused ? 'paused' : 'in use'],
    ['failures lately', one.recent_failures.length],
  ]);

const shown = (data: Answered): Outcome => ({ data, text: accountText(data as Row) });

const account: Command = {
  name: 'account',
  usage: 'ID',
  about: 'One account: state, balance, recent failures (all of it with --json).',
  least: 1,
  run: async ({ client, words: [id = ''] }) => shown(await client.get(pathTo`/accounts/${id}`)),
};

const logNames: Command = {
  name: 'log-names',
  usage: 'E-MAIL [ADDRESS]',
  about: 'The hashes under which an e-mail address and an IP address stand in the log of logins.',
  least: 1,
  run: async ({ client, words: [email = '', address] }) => {
    const data = await client.post(
      '/log-names',
      address === undefined ? { email } : { email, address },
    );
    const { email_hash, source_hash } = data as Row;
    return {
      data,
      text: facts([
        ['email_hash', email_hash],
        ['source_hash', source_hash ?? '(no address given)'],
      ]),
    };
  },
};

const suspend: Command = {
  name: 'suspend',
  usage: 'ID --reason …',
  about: 'Suspends an account everywhere within a second.',
  least: 1,
  options: { reason: { type: 'string', about: 'why; the account’s webhook is told' } },
  run: async ({ client, words: [id = ''], values }) => {
    const reason = textOf(values, 'reason');
    if (reason === undefined)
      throw new CommandError('suspend: --reason is missing.', exitCodes.usage);
    return shown(await client.post(pathTo`/accounts/${id}/suspend`, { reason }));
  },
};

const reinstate: Command = {
  name: 'reinstate',
  usage: 'ID',
  about: 'Takes a suspended account back.',
  least: 1,
  run: async ({ client, words: [id = ''] }) =>
    shown(await client.post(pathTo`/accounts/${id}/reinstate`)),
};

const logout: Command = {
  name: 'logout',
  usage: 'ID',
  about: 'Ends all sessions of an account within a second; its keys go on.',
  least: 1,
  run: async ({ client, words: [id = ''] }) => {
    const data = await client.post(pathTo`/accounts/${id}/logout`);
    return { data, text: `${data.ended} sessions ended\n` };
  },
};

const booking = (
  name: 'credit' | 'adjust',
  kind: 'deposit' | 'adjust',
  about: string,
): Command => ({
  name,
  usage: 'ID USD',
  about,
  least: 2,
  options: {
    reference: {
      type: 'string',
      about: 'names the transfer: booked once however often it is asked for',
    },
    note: { type: 'string', about: 'stands in the ledger' },
  },
  run: async ({ client, words: [id = '', usd = ''], values }) => {
    // Named here, so that it can be asked for again when its answer is lost.
    const reference = textOf(values, 'reference') ?? `cli-${randomUUID()}`;
    const note = textOf(values, 'note') ?? null;
    const body = { kind, amount: toNumber(usd, 'USD'), note, reference };
    const asked = client.post(pathTo`/accounts/${id}/credit`, body);
    const data = await asked.catch((error: CommandError) => {
      const again = `Whether it was booked is not known: ask again with --reference ${reference}`;
      if (error.exitCode !== exitCodes.unreachable) throw error;
      throw new CommandError(`${error.message}\n${again}`, error.exitCode);
    });
    const { balance } = data.account as Row;
    return {
      data,
      text: facts([
        [data.booked ? 'booked' : 'was booked before', data.reference as string],
        ['balance', balance],
      ]),
    };
  },
});

const price: Command = {
  name: 'price',
  usage: 'ID COUNTRY USD|none',
  about: 'The account’s own price for a country.',
  least: 3,
  run: async ({ client, words: [id = '', country = '', usd = ''] }) => {
    const body = { country, price: usd === 'none' ? null : toNumber(usd, 'USD') };
    const data = await client.post(pathTo`/accounts/${id}/price`, body);
    const rows = (data.prices as Row[]).map((one): Cell[] => [one.country, one.price]);
    return { data, text: table(['COUNTRY', 'USD'], rows) };
  },
};

const sharedNumber: Command = {
  name: 'shared-number',
  usage: 'ID on|off',
  about: 'Keeps one account off the shared number, or lets it use it again.',
  least: 2,
  run: async ({ client, words: [id = '', state] }) => {
    if (state !== 'on' && state !== 'off') {
      throw new CommandError('shared-number: on or off?', exitCodes.usage);
    }
    const paused = state === 'off';
    return shown(await client.post(pathTo`/accounts/${id}/shared-number`, { paused }));
  },
};

const capacity: Command = {
  name: 'capacity',
  usage: '',
  about: 'Requests for capacity that wait for a review.',
  run: async ({ client }) => {
    const data = await client.get('/capacity');
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.account_id, one.id, one.requested_sustained_per_minute, one.created_at],
      one.business_justification,
    ]);
    return { data, text: table(['ACCOUNT', 'REQUEST', 'A MINUTE', 'SINCE', 'WHY'], rows) };
  },
};

const review: Command = {
  name: 'review',
  usage: 'ACCOUNT REQUEST',
  about: 'Grants a request for capacity, or rejects it.',
  least: 2,
  options: {
    'per-minute': { type: 'string', about: 'sends a minute that are granted' },
    reject: { type: 'boolean', about: 'rejects the request' },
    note: { type: 'string', about: 'why' },
  },
  run: async ({ client, words: [id = '', request = ''], values }) => {
    const granted = numberOf(values, 'per-minute');
    if ((granted === undefined) !== (values.reject === true)) {
      throw new CommandError('review: give --per-minute or --reject.', exitCodes.usage);
    }
    const body = { per_minute: granted ?? null, note: textOf(values, 'note') ?? null };
    const data = await client.post(pathTo`/accounts/${id}/capacity/${request}`, body);
    return { data, text: `${data.status}\n` };
  },
};

const payments: Command = {
  name: 'payments',
  usage: '',
  about: 'Payments received for no known account, the oldest first: to be claimed for one.',
  run: async ({ client }) => {
    const data = await client.get('/payments');
    const rows = itemsOf(data).map((one): Cell[] => [
      ...[one.payment, one.named, one.amount, one.received_at],
    ]);
    return { data, text: table(['PAYMENT', 'NAMED', 'USD', 'RECEIVED'], rows) };
  },
};

const claim: Command = {
  name: 'claim',
  usage: 'PAYMENT ID',
  about: 'Books a payment that was received for no known account to this one.',
  least: 2,
  run: async ({ client, words: [payment = '', account = ''] }) =>
    shown(await client.post(pathTo`/payments/${payment}/claim`, { account })),
};

export const accountCommands: readonly Command[] = [
  ...[accounts, account, logNames, suspend, reinstate, logout],
  booking('credit', 'deposit', 'Books a payment that was received.'),
  booking('adjust', 'adjust', 'Books a correction, up or down.'),
  ...[payments, claim, price, sharedNumber, capacity, review],
];
