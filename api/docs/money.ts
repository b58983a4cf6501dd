// Plans and prices, from the rules that charge.

import { floorDays, floorRate } from '../../lib/billing/floor.ts';
import {
  lowBalanceMicros,
  minimumBalanceMicros,
  totpPriceMicros,
} from '../../lib/billing/rules.ts';
import { toUsd } from '../../lib/kernel/money.ts';
import { type Facts, table } from './page.ts';

const usd = (micros: number): string => `${toUsd(micros)} USD`;

export const priceRows = ({
  priceMicros,
  trialVerifications,
  sharedGrant,
  exposure,
  sharedHourly,
  floorMinimumDaily,
}: Facts): string =>
  table(
    ['What', 'Here'],
    [
      ['Price of a verification in countries without one of their own', usd(priceMicros)],
      ['Price of a TOTP verification, on success', usd(totpPriceMicros)],
      ['Free verifications of a new account', String(trialVerifications)],
      ['Balance that must be on the account to send', usd(minimumBalanceMicros)],
      ['Balance below which `billing.low_balance` warns', usd(lowBalanceMicros)],
      [
        'Unverified messages on the shared number before the first deposit',
        `${sharedGrant.unverified}, and ${sharedGrant.perVerified} more for each verified one`,
      ],
      [
        'What unverified messages of 24 hours on the shared number may cost the service',
        `${usd(exposure.trialMicros)} before the first deposit; then ${usd(exposure.paidMicros)}, or ${exposure.timesCharged} times what was charged in the same time, whichever is more`,
      ],
      ['Sends on the shared number in a UTC hour', sharedHourly.toLocaleString('en-US')],
      [
        'Safety floor',
        `${floorDays} days in a row under ${Math.round(floorRate * 100)} % verified, each with at least ${floorMinimumDaily} settled messages`,
      ],
    ],
  );
