// The WhatsApp Cloud API of the simulators: paths under /graph/{version} and what stands behind them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject, parseJsonObject, Refusal, readBody, readParameters, sendJson } from './http.ts';
import type { Stats } from './stats.ts';
import type { Accounts, Business } from './whatsapp-accounts.ts';
import { GraphFailure, graphError, unknownObject } from './whatsapp-errors.ts';
import { answerFault, type Faults } from './whatsapp-faults.ts';
import type { WhatsAppLimits } from './whatsapp-limits.ts';
import { checkSender, type MessageReader } from './whatsapp-messages.ts';
import type { WhatsAppNodes } from './whatsapp-nodes.ts';
import type { WhatsAppSend } from './whatsapp-send.ts';

const path = /^\/graph\/(v\d+\.\d+)\/([^/?]+)(?:\/([^/?]+))?\/?(?:\?(.*))?$/;

const tokenOf = (request: IncomingMessage, query: URLSearchParams): string | undefined =>
  /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ??
  query.get('access_token') ??
  undefined;

/** Headers Graph sets on every answer. */
export const graphHeaders = (wabaId: string, version: string): Record<string, string> => ({
  'facebook-api-version': version,
  'x-fb-trace-id': 'Simulated',
  'x-business-use-case-usage': JSON.stringify({
    [wabaId]: [{ type: 'whatsapp', call_count: 1, estimated_time_to_regain_access: 0 }],
  }),
});

export type WhatsApp = ReturnType<typeof createWhatsApp>;

/** Creates the Graph paths. */
export const createWhatsApp = (deps: {
  accounts: Accounts;
  nodes: WhatsAppNodes;
  faults: Faults;
  limits: WhatsAppLimits;
  stats: Stats;
  readMessage: MessageReader;
  send: WhatsAppSend;
}) => {
  const { accounts, nodes, limits, stats } = deps;

  const sendMessage = (
    request: IncomingMessage,
    response: ServerResponse,
    { business, id: phoneNumberId, body }: { business: Business; id: string; body: Buffer },
  ) => {
    const number = checkSender(accounts, business, phoneNumberId);
    const message = deps.readMessage(number, parseJsonObject(body));
    limits.check(phoneNumberId, message.phone);
    deps.send({ request, response, message, phoneNumberId });
  };

  const fail = (
    response: ServerResponse,
    error: unknown,
    provider: 'whatsapp' | 'whatsapp_management',
  ) => {
    const details = error instanceof Refusal ? error.message : undefined;
    if (!(error instanceof GraphFailure) && details === undefined) throw error;
    const failure =
      error instanceof GraphFailure ? error : new GraphFailure(100, { details: details ?? '' });
    stats.note(provider, `error_${failure.code}`);
    const { http, body } = graphError(failure.code, failure.parts);
    sendJson(response, http, body);
  };

  type ManagementCall = {
    request: IncomingMessage;
    method: string;
    id: string;
    edge: string;
    body: Buffer;
    query: URLSearchParams;
  };

  const exchange = ({ request, method, id, edge, body, query }: ManagementCall) => {
    stats.note('whatsapp_management', `${method} oauth/${edge}`);
    if (edge !== 'access_token') throw unknownObject(id, method.toLowerCase());
    return { answer: nodes.exchangeCode(readParameters(request, body, query)), headers: {} };
  };

  const manage = (call: ManagementCall) => {
    const { request, method, id, edge, body, query } = call;
    if (id === 'oauth') return exchange(call);
    if (method === 'GET' && edge === 'subscriptions') {
      return { answer: nodes.subscriptions(id, tokenOf(request, query)), headers: {} };
    }
    const business = accounts.authorise(tokenOf(request, query));
    const input = readParameters(request, body, query);
    const answer = nodes.call(method, { business, id, edge, input, query });
    if (!isObject(answer)) throw unknownObject(id, method.toLowerCase());
    stats.note('whatsapp_management', `${method} ${edge || 'node'}`);
    return { answer, headers: graphHeaders(business.wabaId, 'v25.0') };
  };

  const answerManagement = (call: ManagementCall, response: ServerResponse) => {
    const { request, method, id, edge } = call;
    const fault = deps.faults.take(`${method} ${edge ? `${id}/${edge}` : id}`);
    if (fault && !fault.takesEffect) return answerFault(fault, request, response);
    const { answer, headers } = manage(call);
    if (fault) answerFault(fault, request, response);
    else sendJson(response, 200, answer, headers);
  };

  return {
    /** Answers one call under /graph/. */
    handle: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { method = 'GET', url = '' } = request;
      const [, , id = '', edge = '', search = ''] = path.exec(url) ?? [];
      const isMessage = method === 'POST' && edge === 'messages';
      const provider = isMessage ? 'whatsapp' : 'whatsapp_management';
      try {
        const body = await readBody(request);
        const query = new URLSearchParams(search);
        if (!id) throw new GraphFailure(100, { message: 'Unknown path components.' });
        if (!isMessage) {
          answerManagement({ request, method, id, edge, body, query }, response);
          return;
        }
        const business = accounts.authorise(tokenOf(request, query));
        sendMessage(request, response, { business, id, body });
      } catch (error) {
        fail(response, error, provider);
      }
    },
  };
};
