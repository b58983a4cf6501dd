// The magic numbers, from the table the sandbox reads.
import { magicNumbers, sandboxLinkedPhone } from '../../lib/otp/sandbox.ts';
import { code, table } from './page.ts';

const calls = {
  admission: '`send`, `deliver`',
  channel: '`send`, `deliver`',
  verify: '`verify`',
  totp: 'TOTP `enroll`, `verify`',
};

export const magicRows = (): string =>
  table(
    ['Phone', 'Call', 'Answer', 'Stands for'],
    [
      ...magicNumbers.map(({ phone, stage, code: error, about }) => [
        code(phone),
        calls[stage],
        `[${error}](/docs/errors/${error})`,
        about,
      ]),
      [
        code(sandboxLinkedPhone),
        calls.channel,
        '200, `channel: telegram`',
        'WhatsApp does not reach it, Telegram is linked: the code falls back.',
      ],
    ],
  );
