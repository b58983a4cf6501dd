// What must never have happened, judged from what was read of every side; pure, so that a test can plant each violation.
import type { MessageCount } from '../simulators/stats.ts';
import type { Seen } from './load.ts';

export type Invariant = { name: string; violations: string[] };

export type Message = { id: string; phone: string; status: string };

/** What all sides say at the end of a run. */
export type Findings = {
  seen: readonly Seen[];
  messages: readonly Message[];
  /** WhatsApp's messages by our id of them. */
  whatsapp: ReadonlyMap<string, MessageCount>;
  /** Telegram's by phone: nothing of ours names a message there, and each phone is sent to once. */
  telegram: ReadonlyMap<string, MessageCount>;
  /** Queues that are not empty. */
  queues: Record<string, number>;
  differences: string[];
};

/** Answers that say nothing was sent. */
const undone = new Set([
  ...['DELIVERY_FAILED', 'TELEGRAM_UNAVAILABLE', 'CHANNEL_NOT_LINKED', 'TEMPLATE_NOT_READY'],
  ...['CENTRAL_WHATSAPP_PAUSED', 'SERVICE_UNAVAILABLE', 'RATE_LIMIT_EXCEEDED'],
]);

const nameOf = ({ phone, messageId, code }: Seen): string =>
  [phone, messageId, code].filter(Boolean).join(' ');

const ofProviders = ({ seen, messages, whatsapp, telegram }: Findings): Invariant[] => {
  const byPhone = Map.groupBy(messages, ({ phone }) => phone);
  const ids = new Set(messages.map(({ id }) => id));
  const rowsOf = (phone: string): Message[] => byPhone.get(phone) ?? [];
  const taken = ({ phone, messageId }: Seen): boolean =>
    (whatsapp.get(messageId ?? '')?.accepted ?? 0) > 0 || (telegram.get(phone)?.accepted ?? 0) > 0;
  const arrived = (phone: string): boolean =>
    (telegram.get(phone)?.delivered ?? 0) > 0 ||
    rowsOf(phone).some(({ id }) => (whatsapp.get(id)?.delivered ?? 0) > 0);
  return [
    {
      name: 'no message was sent twice by a provider',
      violations: [
        ...[...whatsapp].filter(([, { accepted }]) => accepted > 1).map(([id]) => id),
        ...[...telegram]
          .filter(([phone, { accepted }]) => accepted > Math.max(rowsOf(phone).length, 1))
          .map(([phone]) => `${phone} by Telegram`),
      ],
    },
    {
      name: 'no 200 without a provider’s acceptance',
      violations: seen.filter((one) => one.status === 200 && !taken(one)).map(nameOf),
    },
    {
      name: 'no answer of "nothing was sent" for a code that arrived, over either channel',
      violations: seen
        .filter(({ code, phone }) => undone.has(code ?? '') && arrived(phone))
        .map(nameOf),
    },
    {
      name: 'no accepted message without a row',
      violations: [
        ...[...whatsapp.keys()].filter((id) => !ids.has(id)),
        ...[...telegram.keys()].filter((phone) => rowsOf(phone).length === 0),
      ],
    },
  ];
};

const ofRows = ({ seen, messages, queues, differences }: Findings): Invariant[] => {
  const known = new Map(messages.map((message) => [message.id, message]));
  return [
    {
      name: 'no message without a final state',
      violations: messages.filter(({ status }) => status === 'sent').map(({ id }) => id),
    },
    {
      name: 'no verification lost',
      violations: seen
        .filter(
          ({ verified, messageId }) =>
            verified && known.get(messageId ?? '')?.status !== 'verified',
        )
        .map(nameOf),
    },
    {
      name: 'every queue is empty, the dead ones too',
      violations: Object.entries(queues).map(([name, depth]) => `${name}: ${depth}`),
    },
    { name: 'the books agree: every verification is charged once', violations: differences },
  ];
};

/** Every invariant, with what violates it. */
export const judge = (findings: Findings): Invariant[] => [
  ...ofProviders(findings),
  ...ofRows(findings),
];
