// Own WhatsApp numbers: which template is sent with, what news means, and what the provider's codes break or blame.
import test from 'ava';
import fc from 'fast-check';
import { classifyWhatsappError } from '../../lib/channels/whatsapp-errors.ts';
import {
  accountEffect,
  brokenReasonOf,
  chooseTemplate,
  issueOf,
  judgeNews,
  type KnownTemplate,
  qualityOf,
  shownTemplate,
  templateStatusOf,
  templateTtlSeconds,
} from '../../lib/connections/rules.ts';
import { knownErrorCodes } from '../simulators/whatsapp-errors.ts';
import { templateEvents } from '../simulators/whatsapp-templates.ts';

const name = 'otp_code';
const template = (language: string, status: string) => ({ name, language, status });
const chosen = (language: string, ...templates: ReturnType<typeof template>[]) =>
  chooseTemplate({ templates, wabaId: '1' }, { name, language }).language;

test('the wanted template is sent with, unless only another is approved', (t) => {
  t.is(chosen('ar'), 'ar');
  t.is(chosen('ar', template('en_US', 'approved')), 'en_US');
  t.is(chosen('ar', template('ar', 'pending'), template('en_US', 'approved')), 'en_US');
  t.is(chosen('ar', template('ar', 'approved'), template('en_US', 'approved')), 'ar');
  t.is(chosen('ar', template('ar', 'paused'), template('en_US', 'rejected')), 'ar');
  const other = { name: 'greeting', language: 'ar', status: 'approved' };
  t.is(chosen('en_US', other as never), 'en_US');
});

test('a template nobody looked after is unknown, one that is not there is not created', (t) => {
  const wanted = { name, language: 'ar' };
  t.is(shownTemplate({ templates: [], wabaId: null }, wanted).status, 'unknown');
  t.is(shownTemplate({ templates: [], wabaId: '1' }, wanted).status, 'not_created');
});

test('every event of the provider is a state, and an unknown one is never taken for approved', (t) => {
  for (const event of templateEvents) t.not(templateStatusOf(event), 'unknown', event);
  for (const event of ['APPROVED', 'FLAGGED', 'REINSTATED', 'UNARCHIVED']) {
    t.is(templateStatusOf(event), 'approved');
  }
  t.is(templateStatusOf('SOMETHING_NEW'), 'unknown');
  t.deepEqual(['GREEN', 'RED', 'NA', ''].map(qualityOf), ['green', 'red', 'unknown', 'unknown']);
});

test('news in any order, each as often as the provider likes, end at the newest', (t) => {
  const course = fc.array(fc.constantFrom('pending', 'approved', 'paused'), {
    ...{ minLength: 1, maxLength: 6 },
  });
  const arrivals = course.chain((statuses) => {
    const news = statuses.map((status, index) => ({ status, at: (index + 1) * 1000 }));
    const twice = [...news, ...news];
    const all = { minLength: twice.length, maxLength: twice.length };
    return fc.tuple(fc.constant(statuses.at(-1)), fc.shuffledSubarray(twice, all));
  });
  const none: KnownTemplate = { status: 'not_created', checkedAt: 0, newsAt: 0 };
  fc.assert(
    fc.property(arrivals, ([last, news]) => {
      let known = none;
      for (const { status, at } of news) {
        const judged = judgeNews(known, { status, at });
        if (judged === 'change') known = { status, newsAt: at, checkedAt: 0 };
        if (judged === 'confirm') known = { ...known, newsAt: at };
      }
      return known.status === last;
    }),
  );
  t.pass();
});

test('news older than what the provider said when asked changes nothing', (t) => {
  const known = { status: 'approved', checkedAt: 1_000_000, newsAt: 0 };
  t.is(judgeNews(known, { status: 'pending', at: 900_000 }), 'old');
  // Its clock may be a little behind ours.
  t.is(judgeNews(known, { status: 'paused', at: 999_000 }), 'change');
  t.is(judgeNews(known, { status: 'approved', at: 2_000_000 }), 'confirm');
  const told = { ...known, checkedAt: 0, newsAt: 5 };
  t.is(judgeNews(told, { status: 'approved', at: 5 }), 'confirm');
  t.is(judgeNews(undefined, { status: 'approved', at: 5 }), 'change');
});

test('only refusals that will not pass break a connection', (t) => {
  const breaking = knownErrorCodes.filter(
    (code) => classifyWhatsappError({ code }) === 'broken' && brokenReasonOf(code) !== undefined,
  );
  t.deepEqual(breaking, [0, 10, 33, 190, 200, 803]);
  t.is(brokenReasonOf(190), 'token_invalid');
  t.is(brokenReasonOf(131042), undefined, 'a payment problem');
  t.is(brokenReasonOf(368), undefined, 'a restriction');
});

test('every code of the provider blames a field or nobody, and says nothing of the token', (t) => {
  const steps = ['read_number', 'read_account', 'register', 'subscribe', 'list_templates'] as const;
  const blamed = new Set<string>();
  for (const code of knownErrorCodes) {
    for (const step of steps) {
      const issue = issueOf({ step, code, subcode: undefined, transient: false }, 'access_token');
      if (issue) blamed.add(issue.field);
    }
  }
  t.deepEqual([...blamed].sort(), ['access_token', 'phone_number_id', 'waba_id']);
  const silence = { step: 'read_number', code: null, subcode: undefined, transient: true } as const;
  t.is(issueOf(silence, 'access_token'), undefined);
});

test('an account update breaks, heals or means nothing', (t) => {
  t.deepEqual(accountEffect('DISABLED_UPDATE', 'DISABLE'), { broken: 'account_disabled' });
  t.deepEqual(accountEffect('DISABLED_UPDATE', 'REINSTATE'), { healed: 'account_disabled' });
  t.is(accountEffect('DISABLED_UPDATE', 'SCHEDULE_FOR_DISABLE'), undefined);
  t.deepEqual(accountEffect('PARTNER_REMOVED', null), { broken: 'app_removed' });
  t.is(accountEffect('ACCOUNT_VIOLATION', null), undefined);
});

test('the lifetime of a template is one that the provider takes', (t) => {
  t.deepEqual([1, 30, 60, 900, 5000].map(templateTtlSeconds), [30, 30, 60, 900, 900]);
});
