// Faults of the simulated management API: named calls that answer an error, nothing, or a proxy's page.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject, type JsonObject, Refusal, sendJson } from './http.ts';
import { graphError, isKnownError } from './whatsapp-errors.ts';
import { sendProxyPage } from './whatsapp-send.ts';

const answers = ['error', 'html_502', 'hold', 'cut', 'empty'] as const;
type FaultAnswer = (typeof answers)[number];

export type Fault = {
  /** Method and path below the version: `POST 106540352242922/register`. */
  call: string;
  answer: FaultAnswer;
  code: number;
  subcode: number | undefined;
  /** The call has its effect all the same: only its answer is lost. */
  takesEffect: boolean;
  /** How many calls it hits; null: all. */
  times: number | null;
};

const readFault = (value: unknown): Fault => {
  if (!isObject(value)) throw new Refusal(400, 'faults must be objects.');
  const { call, answer = 'error', code = 131000, subcode, takes_effect: effect, times } = value;
  if (typeof call !== 'string' || !/^(GET|POST|DELETE) \S+$/.test(call)) {
    throw new Refusal(400, 'call must be a method and a path, like "POST 123/register".');
  }
  const named = answers.find((one) => one === answer);
  if (!named) throw new Refusal(400, `answer must be one of ${answers.join(', ')}.`);
  if (typeof code !== 'number' || (named === 'error' && !isKnownError(code))) {
    throw new Refusal(400, 'code must be a known error code.');
  }
  return {
    ...{ call, answer: named, code },
    subcode: typeof subcode === 'number' ? subcode : undefined,
    takesEffect: effect === true,
    times: typeof times === 'number' ? times : null,
  };
};

export type Faults = ReturnType<typeof createFaults>;

/** Creates the list of faults; empty from the start and after a reset. */
export const createFaults = () => {
  let faults: Fault[] = [];
  return {
    /** Replaces the faults of the calls that are named; `answer: null` ends one. @throws Refusal 400 */
    set: (body: JsonObject): Fault[] => {
      const given = Array.isArray(body.faults) ? (body.faults as JsonObject[]) : [];
      const named = new Set(given.map((one) => one.call));
      const added = given.filter((one) => one.answer !== null).map(readFault);
      faults = [...faults.filter(({ call }) => !named.has(call)), ...added];
      return faults;
    },
    /** The fault of a call, counted as used. */
    take: (call: string): Fault | undefined => {
      const fault = faults.find((one) => one.call === call && one.times !== 0);
      if (fault && fault.times !== null) fault.times -= 1;
      return fault;
    },
    reset: (): void => {
      faults = [];
    },
  };
};

/** Answers a call as its fault says. */
export const answerFault = (
  { answer, code, subcode }: Fault,
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  if (answer === 'cut') request.socket.destroy();
  // The caller's patience ends first; the connection goes when it leaves.
  if (answer === 'hold' || answer === 'cut') return;
  if (answer === 'html_502') {
    sendProxyPage(response);
  } else if (answer === 'empty') {
    sendJson(response, 200, {});
  } else {
    const { http, body } = graphError(code, subcode === undefined ? {} : { subcode });
    sendJson(response, http, body);
  }
};
