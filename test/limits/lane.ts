// A lane of its own for each test of admission: a prefix, a clock held by hand, and answers in a word.
import {
  type Admission,
  type AdmissionRequest,
  createAdmission,
} from '../../lib/limits/admission.ts';
import { standardTier } from '../../lib/limits/rules.ts';
import type { TestRedis } from '../support/redis-server.ts';

export const base: AdmissionRequest = {
  ...{ operation: 'send', accountId: 'acc', keyId: 'key', mode: 'live', phoneKey: 'f00d' },
  tier: standardTier,
};

/** An admission under its own prefix at a clock of its own, and a shorthand for its answers. */
export const createLane = (server: TestRedis, name: string) => {
  let now = 1_800_000_000_000;
  const prefix = `${server.prefix}${name}:`;
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  const answer = ({ admitted, ...rest }: Admission): string =>
    admitted || !('refusal' in rest)
      ? 'yes'
      : `${rest.refusal.name} ${rest.refusal.retryAfterSeconds}`;
  return {
    admission,
    prefix,
    pass: (ms: number) => {
      now += ms;
    },
    send: async (change: Partial<AdmissionRequest> = {}) =>
      answer(await admission.admit({ ...base, ...change })),
    play: async (phoneKey: string, sourceKey: string) =>
      answer(await admission.admitPlayground({ phoneKey, sourceKey })),
  };
};
