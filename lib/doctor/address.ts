// The public address, as providers know it: whoever reaches it reaches the API.
import type { Http } from '../infra/http.ts';
import type { Config } from '../kernel/config.ts';
import { type Finding, findingsOf } from './rules.ts';

const onWebhooks = findingsOf('Webhooks');
const onSettings = findingsOf('Settings');

const examineOne = async (http: Http, origin: string): Promise<Finding> => {
  const { ok, error } = onWebhooks;
  const { host } = new URL(origin);
  const text = `The public address (${host}) does not lead to this service`;
  const advice = 'Providers deliver receipts there: see to DNS, TLS and the proxy in front.';
  try {
    const { status } = await http.send({ method: 'GET', url: `${origin}/health` });
    return status === 200
      ? ok('inbound.reachable', `The public address (${host}) leads to a healthy API.`)
      : error('inbound.unhealthy', `${text}, or it is not healthy: it answers ${status}.`, advice);
  } catch {
    return error('inbound.unreachable', `${text}: nobody answers.`, advice);
  }
};

/** The API speaks HTTP alone, so where the address is https somebody stands in front. */
const judgeProxies = (origins: readonly string[], { trustedProxies }: Config): Finding[] => {
  // An operator who says 0 knows of the proxy, or that none adds to the header.
  if (trustedProxies !== undefined || !origins.some((origin) => origin.startsWith('https:')))
    return [];
  const text =
    'The public address is https, so a proxy stands in front, but TRUSTED_PROXIES is not set: all callers count as one address, and share its limits.';
  const advice =
    'Set TRUSTED_PROXIES to how many proxies add to X-Forwarded-For; 0 when none does.';
  return [onSettings.warning('settings.proxies', text, advice)];
};

/** Looks at the addresses that providers call, each once. */
export const examineAddresses = async (
  http: Http,
  config: Config,
  called: readonly (string | undefined)[],
): Promise<Finding[]> => {
  const known = [...called, config.publicUrl || undefined];
  const origins = [...new Set(known.flatMap((url) => URL.parse(url ?? '')?.origin ?? []))];
  if (origins.length === 0) {
    const text = 'No provider could be asked for our public address, so it was not looked at.';
    return [onWebhooks.ok('inbound.unknown', text)];
  }
  const found = await Promise.all(origins.map((origin) => examineOne(http, origin)));
  return [...found, ...judgeProxies(origins, config)];
};
