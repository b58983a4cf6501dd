// Webhooks of the WhatsApp simulator: batched status events and other fields, signed over the raw bytes (reference 02 section 4).
import { createHmac } from 'node:crypto';
import type { Clock, Timers } from './clock.ts';
import type { Deliveries } from './deliveries.ts';
import type { SentMessage } from './phones.ts';
import type { Accounts, Business } from './whatsapp-accounts.ts';
import { errorTitle } from './whatsapp-errors.ts';

export type Status = {
  message: SentMessage;
  status: 'sent' | 'delivered' | 'read' | 'failed';
  code: number | undefined;
};

const maxPerPost = 500;
// Several changes per entry, so that a receiver which reads only the first one is found out.
const maxPerChange = 50;
const errorsPage = 'https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/';

const chunks = <T>(items: T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );

const failureOf = (code: number) => ({
  errors: [
    {
      code,
      title: errorTitle(code),
      message: errorTitle(code),
      error_data: { details: `${errorTitle(code)}.` },
      href: errorsPage,
    },
  ],
});

const pricingOf = (category: string) => ({
  pricing: { billable: true, pricing_model: 'PMP', type: 'regular', category },
});

// The shape of v24 and later: no conversation; pricing on sent and delivered alone.
const statusItem = ({ message, status, code }: Status, timestamp: string) => ({
  id: message.wamid,
  status,
  timestamp,
  recipient_id: message.phone.slice(1),
  ...(message.echo === undefined ? {} : { biz_opaque_callback_data: message.echo }),
  ...(status === 'sent' || status === 'delivered' ? pricingOf(message.category) : {}),
  ...(status === 'failed' ? failureOf(code ?? 131000) : {}),
});

export type WhatsAppWebhooks = ReturnType<typeof createWhatsAppWebhooks>;

/** Creates the outbox of the app's webhooks. Accounts the app is not subscribed to stay silent. */
export const createWhatsAppWebhooks = (deps: {
  appSecret: string;
  apiUrl(): string;
  deliveries: Deliveries;
  accounts: Accounts;
  clock: Clock;
  timers: Timers;
  batchMs: number;
}) => {
  const { accounts, clock, timers, deliveries } = deps;
  let due: { item: unknown; phoneNumberId: string }[] = [];
  let flushing = false;
  let pending: Promise<boolean>[] = [];

  const url = () => (deps.apiUrl() ? `${deps.apiUrl()}/v1/inbound/whatsapp` : undefined);

  const post = (entry: unknown[], events: number): Promise<boolean> => {
    const body = Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
    const signature = createHmac('sha256', deps.appSecret).update(body).digest('hex');
    const headers = {
      'x-hub-signature-256': `sha256=${signature}`,
      'user-agent': 'facebookexternalua',
    };
    const posted = deliveries.post({ url, headers, body, events });
    pending.push(posted);
    void posted.finally(() => {
      pending = pending.filter((other) => other !== posted);
    });
    return posted;
  };

  const changesOf = (phoneNumberId: string, items: unknown[]) => {
    const digits = accounts.number(phoneNumberId)?.digits ?? '';
    return chunks(items, maxPerChange).map((statuses) => ({
      field: 'messages',
      value: {
        messaging_product: 'whatsapp',
        metadata: { display_phone_number: digits, phone_number_id: phoneNumberId },
        statuses,
      },
    }));
  };

  const flush = () => {
    flushing = false;
    const batch = due;
    due = [];
    for (const part of chunks(batch, maxPerPost)) {
      const groups = Map.groupBy(part, ({ phoneNumberId }) => phoneNumberId);
      const entry = [...groups].map(([phoneNumberId, items]) => ({
        id: accounts.number(phoneNumberId)?.wabaId ?? '0',
        changes: changesOf(
          phoneNumberId,
          items.map(({ item }) => item),
        ),
      }));
      void post(entry, part.length);
    }
  };

  const subscribed = (phoneNumberId: string): boolean => {
    const number = accounts.number(phoneNumberId);
    return number !== undefined && (accounts.business(number.wabaId)?.subscribed ?? false);
  };

  return {
    /** Puts a status into the next batch. */
    status: (status: Status): void => {
      const { phoneNumberId } = status.message;
      if (!subscribed(phoneNumberId)) return;
      due.push({ item: statusItem(status, String(Math.floor(clock.now() / 1000))), phoneNumberId });
      if (flushing) return;
      flushing = true;
      timers.after(deps.batchMs, flush);
    },
    /** Sends another field (message_template_status_update, account_update …) by itself. */
    field: (business: Business, field: string, value: unknown): void => {
      if (!business.subscribed) return;
      const time = Math.floor(clock.now() / 1000);
      void post([{ id: business.wabaId, time, changes: [{ field, value }] }], 1);
    },
    /** Resolves when everything due now was posted and accepted or dropped. */
    settled: async (): Promise<void> => {
      if (due.length > 0) flush();
      await Promise.allSettled(pending);
    },
    reset: (): void => {
      due = [];
    },
  };
};
