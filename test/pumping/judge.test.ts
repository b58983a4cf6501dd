// Who is held, over the accounts of one block or country: the laws of the decision.
import test from 'ava';
import fc from 'fast-check';
import { judge, type Share, shareOfCodes, shareOfDelivers } from '../../lib/pumping/judge.ts';
import { bounds } from '../../lib/pumping/rules.ts';

const { prefix } = bounds;

type Known = { accountId: string; good: boolean; sources: string[] };
type Counts = { settled: number; verified: number; open: number };

const known = (accountId: string, change: Partial<Known> = {}): Known => ({
  accountId,
  good: false,
  sources: [],
  ...change,
});
const codes = (accountId: string, counts: Partial<Counts>, change: Partial<Known> = {}): Share =>
  shareOfCodes(known(accountId, change), { settled: 0, verified: 0, open: 0, ...counts });

const reasonOf = (shares: Share[], accountId: string) => {
  const mine = shares.find((share) => share.accountId === accountId);
  return mine && judge(mine, shares, prefix)?.reason;
};

const counts = fc
  .record({ verified: fc.nat(12), unverified: fc.nat(60), open: fc.nat(40) })
  .map(({ verified, unverified, open }) => ({ settled: verified + unverified, verified, open }));
const others = fc
  .array(fc.record({ counts, good: fc.boolean(), source: fc.nat(3) }), { maxLength: 12 })
  .map((list) =>
    list.map((one, index) =>
      codes(`o${index}`, one.counts, { good: one.good, sources: [`s${one.source}`] }),
    ),
  );

test('four accounts with eight codes each that nobody entered are held together, a neighbour who verifies is not', (t) => {
  const shares = [
    ...['a', 'b', 'c', 'd'].map((accountId) => codes(accountId, { settled: 8 })),
    codes('neighbour', { settled: 40, verified: 30 }),
    codes('known', { settled: 9 }, { good: true }),
    codes('newcomer', { settled: 2 }),
  ];
  for (const accountId of ['a', 'b', 'c', 'd'])
    t.is(reasonOf(shares, accountId), 'across_accounts');
  for (const accountId of ['neighbour', 'known', 'newcomer']) {
    t.is(reasonOf(shares, accountId), undefined, accountId);
  }
});

test('accounts of one source count together, one code each included', (t) => {
  const shares = Array.from({ length: 30 }, (_, index) =>
    codes(`a${index}`, { settled: 1 }, { sources: [`host${index}`, 'network'] }),
  );
  t.is(reasonOf(shares, 'a0'), 'across_accounts');
  const strangers = shares.map((share, index) => ({ ...share, sources: [`host${index}`] }));
  t.is(reasonOf(strangers, 'a0'), undefined);
});

test('a good account, and one whose own codes are entered, is held for its own failures alone', (t) => {
  const subject = fc.record({ counts, good: fc.boolean() });
  fc.assert(
    fc.property(subject, others, ({ counts: own, good }, shares) => {
      const mine = codes('me', own, { good, sources: ['s0'] });
      const converts = own.verified * 10 >= own.settled + own.open;
      const alone = judge(mine, [mine], prefix);
      const beside = judge(mine, [mine, ...shares], prefix);
      if (converts) t.is(beside, undefined);
      if (good) t.deepEqual(beside, alone);
    }),
    { numRuns: 1_000 },
  );
});

test('a code that is verified instead of not never leads to a hold, whosever it is', (t) => {
  fc.assert(
    fc.property(counts, others, fc.nat(12), (own, shares, which) => {
      const before = [codes('me', own, { sources: ['s0'] }), ...shares];
      const after = before.map((share, index) => {
        if (index !== which % before.length || share.settled === share.verified) return share;
        const { settled, verified, open } = share;
        return shareOfCodes(share, { settled, verified: verified + 1, open });
      });
      for (const [index, share] of before.entries()) {
        const held = (list: Share[]) => judge(list[index] ?? share, list, prefix) !== undefined;
        t.true(held(before) || !held(after));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the same codes over k accounts: at most the minimum and three for each account go out', (t) => {
  const traffic = fc.record({
    accounts: fc.integer({ min: 1, max: 40 }),
    sources: fc.integer({ min: 1, max: 40 }),
    order: fc.array(fc.nat(39), { minLength: 400, maxLength: 400 }),
  });
  fc.assert(
    fc.property(traffic, ({ accounts, sources, order }) => {
      const settled = Array.from({ length: accounts }, () => 0);
      const shares = () =>
        settled.map((count, index) =>
          codes(`a${index}`, { settled: count }, { sources: [`s${index % sources}`] }),
        );
      const held = new Set<number>();
      let out = 0;
      for (const pick of order) {
        const index = pick % accounts;
        if (held.has(index)) continue;
        settled[index] = (settled[index] ?? 0) + 1;
        out += 1;
        const now = shares();
        for (const [who, share] of now.entries()) if (judge(share, now, prefix)) held.add(who);
      }
      t.true(out <= prefix.minimum + prefix.share * accounts, `${out} of ${accounts} accounts`);
      if (accounts === 1) t.true(out <= prefix.minimum);
    }),
    { numRuns: 200 },
  );
});

test('open codes hold early, settled ones for good; codes that are entered hold nothing', (t) => {
  const early = codes('a', { settled: 5, open: 25 });
  t.like(judge(early, [early], prefix), { reason: 'unverified', early: true, accounts: 1 });
  const late = codes('a', { settled: 30, verified: 2, open: 25 });
  t.like(judge(late, [late], prefix), { early: false, together: { settled: 30, verified: 2 } });
  const entered = codes('a', { settled: 30, verified: 6, open: 25 });
  t.is(judge(entered, [entered], prefix), undefined);
});

test('delivers that are checked elsewhere are judged by receipts and by where they go', (t) => {
  const delivers = (known_: number, arrived: number, here: number, everywhere: number) => {
    const mine = shareOfDelivers(known('a'), { known: known_, arrived, here, everywhere });
    return judge(mine, [mine], prefix)?.reason;
  };
  t.is(delivers(40, 5, 40, 100), 'undelivered');
  t.is(delivers(40, 5, 40, 1_000), undefined, 'receipts are late for everybody');
  t.is(delivers(90, 90, 90, 100), 'concentrated');
  t.is(delivers(90, 90, 90, 200), undefined, 'most go elsewhere');
  t.is(delivers(60, 60, 60, 60), undefined, 'too few');
});

test('of the same delivers, one more that arrived never leads to a hold', (t) => {
  const some = fc.record({ here: fc.nat(200), more: fc.nat(400), young: fc.nat(20) });
  fc.assert(
    fc.property(some, fc.nat(200), ({ here, more, young }, arrived) => {
      const known_ = Math.max(here - young, 0);
      const held = (count: number) => {
        const everywhere = here + more;
        const mine = shareOfDelivers(known('a'), {
          known: known_,
          arrived: count,
          here,
          everywhere,
        });
        return judge(mine, [mine], prefix) !== undefined;
      };
      const fewer = Math.min(arrived, Math.max(known_ - 1, 0));
      t.true(held(fewer) || !held(fewer + 1));
    }),
  );
});
