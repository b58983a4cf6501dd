// Authenticator apps: secrets, the otpauth address with its QR code, and which step a code belongs to (RFC 6238).
import { generateSecret, verifySync } from 'otplib';
import { toDataURL } from 'qrcode';

/** Seconds a code is shown. */
export const stepSeconds = 30;
/** Steps before and after the present one whose codes count (RFC 6238 section 5.2). */
const tolerance = 1;

/** A fresh secret: 160 bits, as RFC 4226 recommends, in base 32. */
export const newSecret = (): string => generateSecret();

const labelMax = 64;

// Neither part of a label may hold a colon (Key URI format); control characters break apps.
const labelPart = (text: string, fallback: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must go
    .replace(/[:\u0000-\u001f\u007f]/g, '')
    .trim()
    .slice(0, labelMax) || fallback;

/**
 * The address an authenticator app reads. All parameters are written out, though most are the defaults: the spec wants
 * them, and otplib's own builder leaves them out.
 */
export const otpauthUrl = (given: { issuer: string; label: string; secret: string }): string => {
  const issuer = labelPart(given.issuer, 'Tessera');
  const label = labelPart(given.label, 'account');
  const encode = encodeURIComponent;
  const query = [
    `secret=${given.secret}`,
    `issuer=${encode(issuer)}`,
    'algorithm=SHA1',
    'digits=6',
    `period=${stepSeconds}`,
  ].join('&');
  return `otpauth://totp/${encode(issuer)}:${encode(label)}?${query}`;
};

/** Most characters of a QR code's data URI. */
const qrMax = 4096;

/** The address as a PNG data URI of at most 4 kB: a long address gets smaller dots. */
export const qrDataUri = async (url: string): Promise<string> => {
  let uri = '';
  for (const scale of [4, 3, 2, 1]) {
    uri = await toDataURL(url, { errorCorrectionLevel: 'M', margin: 2, scale });
    if (uri.length <= qrMax) return uri;
  }
  return uri;
};

/** The step a time (ms) lies in. */
export const stepAt = (nowMs: number): number => Math.floor(nowMs / 1000 / stepSeconds);

/**
 * The step that `code` is right for, among the present one and its neighbours; undefined when it is right for none.
 * Whether the step was used before is for the caller to decide, where it can be decided once.
 */
export const matchStep = (given: {
  secret: string;
  code: string;
  nowMs: number;
}): number | undefined => {
  const { secret, code, nowMs } = given;
  if (!/^\d{6}$/.test(code)) return undefined;
  const result = verifySync({
    secret,
    token: code,
    epoch: Math.floor(nowMs / 1000),
    epochTolerance: tolerance * stepSeconds,
  });
  return result.valid && 'timeStep' in result ? result.timeStep : undefined;
};
