// WhatsApp's error codes and what each means for a one-time code (reference 02 section 3).
import type { RefusalClass } from './channel.ts';

const classes: Record<RefusalClass, readonly number[]> = {
  retry: [1, 2, 131000, 131016, 131057, 133004, 2494100],
  throttle: [4, 80007, 130429],
  pair: [131056],
  unreachable: [130403, 130472, 130497, 131021, 131026, 131030, 131049, 131050, 137000],
  template: [131063, 132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018],
  broken: [
    0, 3, 10, 33, 190, 368, 803, 131005, 131031, 131037, 131042, 131045, 131048, 131064, 133010,
    133015, 133016,
  ],
  bug: [100, 131008, 131009, 131047, 131051, 131052, 131053, 131062, 135000],
};

const classOf = new Map<number, RefusalClass>(
  Object.entries(classes).flatMap(([name, codes]) =>
    codes.map((code) => [code, name as RefusalClass] as const),
  ),
);

/** Code 100 means a wrong request, but with this subcode a number or account we may no longer use. */
const objectGoneSubcode = 33;

/**
 * The class of a Graph error. Codes decide, HTTP statuses do not (Meta's own advice); an unknown code is the
 * provider's passing trouble only if it says so, else the connection needs a look.
 */
export const classifyWhatsappError = (error: {
  code: number;
  subcode?: number | undefined;
  transient?: boolean | undefined;
}): RefusalClass => {
  if (error.code === 100 && error.subcode === objectGoneSubcode) return 'broken';
  const known = classOf.get(error.code);
  if (known !== undefined) return known;
  if (error.code >= 200 && error.code <= 299) return 'broken';
  return error.transient === true ? 'retry' : 'broken';
};
