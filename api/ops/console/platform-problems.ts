// What is wrong with the platform as a whole, beside its engines, queues and channels.
import { counted, momentText } from './format.ts';
import type { Problem, Snapshot } from './problem.ts';

const ofPayments = ({ paymentsUnclaimed: found }: Snapshot): Problem[] => {
  if (!found || found.count === 0) return [];
  const number = `${found.more ? 'More than ' : ''}${counted(found.count, 'payment')}`;
  return [
    {
      severity: 'warning',
      about: 'payments',
      text: `${number} came for no account we know: somebody has paid and has no credit for it.`,
      href: '/ops/payments',
      act: 'Book',
    },
  ];
};

const ofBooks = ({ books }: Snapshot): Problem[] =>
  books && books.mismatches > 0
    ? [
        {
          severity: 'urgent',
          about: 'books',
          text: `The books differ: ${counted(books.mismatches, 'mismatch', 'mismatches')} when they were last compared, at ${momentText(books.at)}.`,
          href: '/ops/switches#books',
          act: 'See the books',
        },
      ]
    : [];

const ofSwitches = ({ switches }: Snapshot): Problem[] =>
  (switches ?? []).map(({ name, text }) => ({
    severity: 'note',
    about: `switch ${name}`,
    text,
    href: '/ops/switches',
    act: 'See the switches',
  }));

const ofCapacity = ({ capacityPending }: Snapshot): Problem[] =>
  capacityPending
    ? [
        {
          severity: 'note',
          about: 'capacity',
          text: `${counted(capacityPending, 'request')} for more capacity ${capacityPending === 1 ? 'waits' : 'wait'} for a review.`,
          href: '/ops/capacity',
          act: 'Review',
        },
      ]
    : [];

/** The books, money that nobody has, what is switched off for everybody, and requests that wait. */
export const ofPlatform = (snapshot: Snapshot): Problem[] => [
  ...ofBooks(snapshot),
  ...ofPayments(snapshot),
  ...ofSwitches(snapshot),
  ...ofCapacity(snapshot),
];
