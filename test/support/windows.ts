// Limits that are in use already: the product's own admission, at times that a test chooses.
import { type AdmissionRequest, createAdmission } from '../../lib/limits/admission.ts';
import { standardTier } from '../../lib/limits/rules.ts';
import type { Stack } from './stack.ts';

/** One earlier call, `agoMs` before now. */
export type Earlier = Partial<AdmissionRequest> & { agoMs: number };

// More at once would wait for each other beyond the time a command may take.
const atOnce = 200;

/** Makes calls that were admitted in the past, oldest first; throws when one would have been refused. */
export const admitEarlier = async (
  { api, config }: Pick<Stack, 'api' | 'config'>,
  calls: readonly Earlier[],
): Promise<void> => {
  const now = api.clock.now();
  let at = now;
  const { redis } = api;
  const admission = createAdmission({ redis, prefix: config.keyPrefix, nowMs: () => at });
  const make = ({ agoMs, ...call }: Earlier, index: number) => {
    // Read at once by the admission: every call has its own time.
    at = now - agoMs;
    return admission.admit({
      ...{ operation: 'send', accountId: `a${index}`, keyId: `k${index}`, mode: 'live' },
      ...{ phoneKey: `p${index}`, tier: standardTier, ...call },
    });
  };
  for (let from = 0; from < calls.length; from += atOnce) {
    const batch = calls.slice(from, from + atOnce).map((call, index) => make(call, from + index));
    const refused = (await Promise.all(batch)).findIndex(({ admitted }) => !admitted);
    if (refused >= 0) throw new Error(`the earlier call ${from + refused} would have been refused`);
  }
};
