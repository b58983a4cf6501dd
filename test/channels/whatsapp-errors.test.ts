// WhatsApp's error codes and the classes they fall into (reference table of Meta's codes).
import test from 'ava';
import type { RefusalClass } from '../../lib/channels/channel.ts';
import { classifyWhatsappError } from '../../lib/channels/whatsapp-errors.ts';
import { knownErrorCodes } from '../simulators/whatsapp-errors.ts';

const expected: Record<RefusalClass, number[]> = {
  retry: [1, 2, 131000, 131016, 131057, 133004, 2494100],
  throttle: [4, 80007, 130429],
  pair: [131056],
  unreachable: [130403, 130472, 130497, 131021, 131026, 131030, 131049, 131050, 137000],
  template: [131063, 132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018],
  broken: [
    ...[0, 3, 10, 33, 190, 200, 299, 368, 803, 131005, 131031, 131037, 131042, 131045],
    ...[131048, 131064, 133010, 133015, 133016],
  ],
  bug: [100, 131008, 131009, 131047, 131051, 131052, 131053, 131062, 135000],
};

for (const [refusal, codes] of Object.entries(expected)) {
  test(`${refusal}: ${codes.join(', ')}`, (t) => {
    for (const code of codes) {
      t.is(classifyWhatsappError({ code }), refusal as RefusalClass, String(code));
      // What Meta's answer says beside the code does not change a code that is known.
      t.is(classifyWhatsappError({ code, transient: true }), refusal as RefusalClass);
    }
  });
}

test('a code nobody knows is passing only if it says so, else the connection needs a look', (t) => {
  for (const code of [199, 300, 132999, 999_999, -1, 1.5, Number.NaN]) {
    t.is(classifyWhatsappError({ code }), 'broken');
    t.is(classifyWhatsappError({ code, transient: true }), 'retry');
  }
});

test('code 100 is our mistake, but with subcode 33 the object is gone', (t) => {
  t.is(classifyWhatsappError({ code: 100, subcode: 33 }), 'broken');
  t.is(classifyWhatsappError({ code: 100, subcode: 2388019 }), 'bug');
});

test('every code the simulators know has a class', (t) => {
  // Codes of registration, PINs, flows and payments: no send meets them.
  const elsewhere = [132068, 132069, 133000, 133005, 133006, 133008, 133009, 134011];
  const classed = new Set([...Object.values(expected).flat(), ...elsewhere]);
  t.deepEqual(
    knownErrorCodes.filter((code) => !classed.has(code)),
    [],
  );
});
