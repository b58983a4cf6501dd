// Answers on their way back: those of one turn of the event loop to one process travel as one message.
import type { Log } from '../../kernel/log.ts';

/** What is said to whoever waits under a correlation id. */
export type Answer = { correlationId: string; body: unknown };

/** The content of a message of answers. */
export const encodeAnswers = (answers: readonly Answer[]): Buffer =>
  Buffer.from(JSON.stringify({ answers: answers.map((one) => [one.correlationId, one.body]) }));

/** Reads a message of answers; what is none is logged without its text, and holds nothing. */
export const readAnswers = (content: Buffer, log: Log): Answer[] => {
  try {
    const { answers } = JSON.parse(content.toString('utf8')) as { answers: [string, unknown][] };
    return answers.map(([correlationId, body]) => ({ correlationId, body }));
  } catch {
    // The error would quote the reply.
    log.warn({}, 'a reply is not one of ours');
    return [];
  }
};

export type Answering = {
  /** Answers whoever waits at the queue `replyTo` under the answer's correlation id. */
  add(replyTo: string, answer: Answer): void;
  /** Sends what was added. */
  flush(): void;
};

/**
 * Jobs that were recorded in one commit end together, and so do their answers: one message costs both sides the same
 * with one answer or fifty.
 */
export const createAnswering = (send: (replyTo: string, answers: Answer[]) => void): Answering => {
  let waiting = new Map<string, Answer[]>();

  const flush = (): void => {
    const now = waiting;
    waiting = new Map();
    for (const [replyTo, answers] of now) send(replyTo, answers);
  };

  return {
    flush,
    add: (replyTo, answer) => {
      if (waiting.size === 0) setImmediate(flush);
      const others = waiting.get(replyTo);
      if (others) others.push(answer);
      else waiting.set(replyTo, [answer]);
    },
  };
};
