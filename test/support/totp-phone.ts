// A phone enrolled for TOTP, as tests use one: calls over HTTP, codes from an app of our own, a clock by hand.
import { appCode } from './authenticator.ts';
import type { Answer, Client } from './client.ts';
import type { HandClock } from './hand-clock.ts';
import { aNumber } from './phones.ts';

export type TotpPhone = {
  phone: string;
  enroll(more?: object): Promise<Answer>;
  verify(code: string): Promise<Answer>;
  disable(): Promise<Answer>;
};

export const totpPhone = (client: Client, phone = aNumber()): TotpPhone => {
  const post = (path: string, more: object = {}) =>
    client.post(`/v1/totp/${path}`, { phone, ...more });
  return {
    phone,
    enroll: (more = {}) => post('enroll', more),
    verify: (code) => post('verify', { code }),
    disable: () => post('disable'),
  };
};

/** What a person with the app does as time passes. */
export const createApp = (clock: HandClock) => {
  /** Goes to where a fresh step begins, so that a code is never used up by an earlier call. */
  const nextStep = () => clock.forward(30_000 - (clock.now() % 30_000));
  return {
    nextStep,
    /** Enrolls and confirms; answers the secret. */
    confirm: async (phone: TotpPhone): Promise<string> => {
      const { secret } = (await phone.enroll()).data as { secret: string };
      nextStep();
      await phone.verify(appCode(secret, clock.now()));
      nextStep();
      return secret;
    },
    /** Six digits that are right at no step nearby. */
    wrongFor: (secret: string): string => {
      const near = [-2, -1, 0, 1, 2].map((steps) => appCode(secret, clock.now(), steps));
      const digits = ['000000', '111111', '222222', '333333', '444444', '555555'];
      return digits.find((code) => !near.includes(code)) ?? '';
    },
  };
};
