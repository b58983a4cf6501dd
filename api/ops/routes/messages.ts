// One message or a few, found by what people know of them, with everything that happened to them.
import { fail } from '../../../lib/kernel/errors.ts';
import { fromMessageId, toMessageId } from '../../../lib/kernel/ids.ts';
import { e164Pattern } from '../../../lib/kernel/phone.ts';
import { object, text } from '../../../lib/kernel/schema.ts';
import { maskedMessage } from '../../../lib/ops/accounts.ts';
import type { MessageRef, SoughtMessages } from '../../../lib/ops/lookup-store.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { timeline } from '../../../lib/reports/messages.ts';
import { opsRoute } from '../route.ts';

const foundMost = 20;

/** What a text may name, in the order in which it is tried. */
const readingsOf = (q: string): SoughtMessages[] => {
  const id = fromMessageId(q);
  if (id) return [{ id }];
  const bare = fromMessageId(toMessageId(q));
  // An id without otp_ may be a message's, or that of a request: this service makes both alike.
  if (bare) return [{ id: bare }, { requestId: q }];
  // As people write numbers: +1 (415) 555-0100.
  const phone = q.replace(/[\s().-]/g, '');
  return [e164Pattern.test(phone) ? { phone } : { requestId: q }];
};

const refsOf = async (app: OpsApp, q: string): Promise<MessageRef[]> => {
  for (const reading of readingsOf(q)) {
    const refs = await app.lookup.messages(reading, foundMost);
    if (refs.length > 0) return refs;
  }
  return [];
};

const found = async (app: OpsApp, q: string) => {
  const refs = await refsOf(app, q);
  const items = await Promise.all(
    refs.map(async (ref) => {
      const item = await maskedMessage(app.reports, ref);
      return item && { ...item, request_id: ref.requestId };
    }),
  );
  return items.filter((item) => item !== undefined);
};

// The number is in the body: addresses end up in logs.
export const searchMessages = opsRoute({
  ...{ method: 'POST', path: '/ops/api/messages/search' },
  summary: 'Messages by id, phone number or request id, newest first; changes nothing.',
  body: object({ q: text().trim().min(1).max(100) }),
  handle: async (app, { body: { q } }) => ({ items: await found(app, q) }),
});

export const oneMessage = opsRoute({
  ...{ method: 'GET', path: '/ops/api/messages/{id}' },
  summary: 'One message with its timeline.',
  params: object({ id: text().max(60) }),
  handle: async (app, { params: { id } }) => {
    const plain = fromMessageId(id) ?? fromMessageId(toMessageId(id));
    const [ref] = plain ? await app.lookup.messages({ id: plain }, 1) : [];
    if (!ref) throw fail('NOT_FOUND');
    const told = await timeline(app, ref.accountId, toMessageId(ref.id), undefined);
    const message = await maskedMessage(app.reports, ref);
    return { message: { ...message, request_id: ref.requestId }, steps: told.steps };
  },
});

export const messageRoutes = [searchMessages, oneMessage];
