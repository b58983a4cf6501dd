// The phones of the benchmark: numbers of the North American plan, one per request, none used twice in a run.

// Area codes in use for a long time; what follows is 2xx-xxxx to 9xx-xxxx, all valid exchanges.
const areas = [202, 206, 212, 213, 305, 310, 312, 404, 415, 503, 512, 602, 617, 702, 713, 917];
const perArea = 7_900_000;
const lowest = 2_000_000;

/** How many numbers there are. */
export const phoneCount = areas.length * perArea;

/** The phone with this number (from 0), E.164; neighbours lie in different areas. */
export const phoneOf = (index: number): string => {
  const area = areas[index % areas.length] ?? 202;
  return `+1${area}${lowest + (Math.floor(index / areas.length) % perArea)}`;
};

/** The secret every phone has enrolled for TOTP. */
export const totpSecret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

/** The code a deliver sends to the phone with this number, and a verify gives back. */
export const codeOf = (index: number): string => String(index % 1_000_000).padStart(6, '0');
