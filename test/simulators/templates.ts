// WhatsApp templates: which exist, in which state, and the webhook that tells of a change.
import type { Answer } from './server.ts';

type Json = Record<string, unknown>;
type Template = { id: string; name: string; language: string; status: string; components: unknown };

export type Templates = {
  isApproved(name: string, language: string): boolean;
  serve(method: string, query: URLSearchParams, body: Json): Answer;
  /** Changes a template's state and tells the webhook; answers false when there is none. */
  setStatus(name: string, change: { language?: string; event: string; reason?: string }): boolean;
};

/** Starts with the one approved template of the settings. */
export const createTemplates = (
  settings: { templateName: string; templateLanguage: string },
  announce: (change: Json) => void,
): Templates => {
  let next = 594_425_479_261_596;
  const all: Template[] = [
    {
      id: String(next),
      name: settings.templateName,
      language: settings.templateLanguage,
      status: 'APPROVED',
      components: [],
    },
  ];

  const create = (body: Json): Answer => {
    next++;
    const { name, language, components } = body;
    const template = { id: String(next), name: String(name), language: String(language) };
    all.push({ ...template, status: 'APPROVED', components });
    return {
      status: 200,
      json: { id: template.id, status: 'APPROVED', category: 'AUTHENTICATION' },
    };
  };

  return {
    isApproved: (name, language) =>
      all.some(
        (one) => one.name === name && one.language === language && one.status === 'APPROVED',
      ),
    serve: (method, query, body) => {
      if (method === 'POST') return create(body);
      const name = query.get('name');
      const data = all
        .filter((one) => name === null || one.name === name)
        .map((one) => ({ ...one, category: 'AUTHENTICATION' }));
      return { status: 200, json: { data, paging: {} } };
    },
    setStatus: (name, { language, event, reason }) => {
      const found = all.filter(
        (one) => one.name === name && (!language || one.language === language),
      );
      for (const template of found) {
        template.status = event;
        announce({
          field: 'message_template_status_update',
          value: {
            event,
            message_template_id: Number(template.id),
            message_template_name: template.name,
            message_template_language: template.language.replace('_', '-'),
            reason: reason ?? 'NONE',
          },
        });
      }
      return found.length > 0;
    },
  };
};
