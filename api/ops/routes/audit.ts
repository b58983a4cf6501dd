// The audit log: who did what, when, to what, and to how many.
import { object, optional, text } from '../../../lib/kernel/schema.ts';
import { auditView } from '../../../lib/ops/audit-store.ts';
import { pageQuery } from '../fields.ts';
import { opsRoute } from '../route.ts';

export const auditLog = opsRoute({
  ...{ method: 'GET', path: '/ops/api/audit' },
  summary: 'What operators did, newest first.',
  query: object({
    ...pageQuery,
    action: optional(text().max(40)),
    subject: optional(text().max(120)),
  }),
  handle: async (app, { query: { before, limit, action, subject } }) => {
    const found = await app.audit.list({ before, action, subject, limit: limit + 1 });
    const items = found.slice(0, limit);
    return {
      items: items.map(auditView),
      next_before: found.length > limit ? (items.at(-1)?.id ?? null) : null,
    };
  },
});

export const auditRoutes = [auditLog];
