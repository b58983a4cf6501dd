// What is wrong with the platform as a whole, beside its engines, queues and channels.
import { counted, momentText } from './format.ts';
import type { Problem, Snapshot } from './problem.ts';

/** The books, what is switched off for everybody, and requests that wait. */
export const ofPlatform = ({ books, capacityPending, switches }: Snapshot): Problem[] => [
  ...(books && books.mismatches > 0
    ? [
        {
          severity: 'urgent' as const,
          about: 'books',
          text: `The books differ: ${counted(books.mismatches, 'mismatch', 'mismatches')} when they were last compared, at ${momentText(books.at)}.`,
          href: '/ops/switches#books',
          act: 'See the books',
        },
      ]
    : []),
  ...(switches ?? []).map(({ name, text }) => ({
    severity: 'note' as const,
    about: `switch ${name}`,
    text,
    href: '/ops/switches',
    act: 'See the switches',
  })),
  ...(capacityPending
    ? [
        {
          severity: 'note' as const,
          about: 'capacity',
          text: `${counted(capacityPending, 'request')} for more capacity ${capacityPending === 1 ? 'waits' : 'wait'} for a review.`,
          href: '/ops/capacity',
          act: 'Review',
        },
      ]
    : []),
];
