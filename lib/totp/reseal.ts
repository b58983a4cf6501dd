// Sealing all seeds with the newest key, so that an old key can be taken away.
import type { EnrollDeps } from './enroll.ts';
import { requireSealer, seedContext } from './enroll.ts';

const pageSize = 500;

/**
 * Seals every seed that an older key sealed anew; can be stopped and run again at any time, beside running processes.
 * `onProgress` hears the number of seeds looked at and changed after each page.
 * @throws TOTP_NOT_CONFIGURED
 */
export const resealSeeds = async (
  deps: Pick<EnrollDeps, 'totp' | 'totpSealer'>,
  onProgress: (progress: { seen: number; changed: number }) => void = () => undefined,
): Promise<{ seen: number; changed: number }> => {
  const sealer = requireSealer(deps);
  const progress = { seen: 0, changed: 0 };
  let after: string | undefined;
  for (;;) {
    const page = await deps.totp.page(after, pageSize);
    for (const { id, seed } of page) {
      progress.seen++;
      if (seed === null || sealer.isCurrent(seed)) continue;
      const context = seedContext(id);
      await deps.totp.reseal(id, seed, sealer.seal(sealer.open(seed, context), context));
      progress.changed++;
    }
    onProgress({ ...progress });
    after = page.at(-1)?.id;
    if (page.length < pageSize) return progress;
  }
};
