// One kept-alive HTTP/1.1 connection that sends a request and waits for its answer: the least a client can cost.
import { connect, type Socket } from 'node:net';

export type LineAnswer = { status: number; body: string };

export type HttpLine = {
  /** Sends one request and resolves with its answer. @throws Error when the connection ends or nothing comes */
  ask(request: string): Promise<LineAnswer>;
  close(): void;
};

type Waiting = { resolve(answer: LineAnswer): void; reject(error: Error): void };

const answerWithinMs = 20_000;
const endOfHead = '\r\n\r\n';

/** Reads a complete answer; undefined while bytes are missing. @throws Error for what it does not understand */
export const readAnswer = (bytes: Buffer): (LineAnswer & { closes: boolean }) | undefined => {
  const at = bytes.indexOf(endOfHead);
  if (at < 0) return undefined;
  const head = bytes.toString('latin1', 0, at);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error('an answer without Content-Length');
  const from = at + endOfHead.length;
  const to = from + Number(length);
  if (bytes.length < to) return undefined;
  return {
    status: Number(head.slice(9, 12)),
    body: bytes.toString('utf8', from, to),
    closes: /\r\nconnection: *close/i.test(head),
  };
};

const tryAnswer = (bytes: Buffer): ReturnType<typeof readAnswer> | Error => {
  try {
    return readAnswer(bytes);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
};

const openSocket = (
  port: number,
  on: { data(chunk: Buffer): void; end(error: Error, socket: Socket): void },
): Socket => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.on('data', on.data);
  socket.on('error', (error) => on.end(error, socket));
  socket.on('close', () => on.end(new Error('the connection was closed'), socket));
  socket.setTimeout(answerWithinMs, () => on.end(new Error('no answer in time'), socket));
  return socket;
};

/** A connection to a port of this machine; it connects when first asked and again after it was closed. */
export const createHttpLine = (port: number): HttpLine => {
  let socket: Socket | undefined;
  let waiting: Waiting | undefined;
  let pending: Buffer | undefined;

  const drop = (error: Error): void => {
    const failed = waiting;
    waiting = undefined;
    pending = undefined;
    socket?.destroy();
    socket = undefined;
    failed?.reject(error);
  };

  const onData = (chunk: Buffer): void => {
    const bytes = pending ? Buffer.concat([pending, chunk]) : chunk;
    const answer = tryAnswer(bytes);
    if (answer instanceof Error) {
      drop(answer);
      return;
    }
    pending = answer ? undefined : bytes;
    if (!answer) return;
    const asked = waiting;
    waiting = undefined;
    if (answer.closes) drop(new Error('closed'));
    asked?.resolve(answer);
  };

  const onEnd = (error: Error, ended: Socket): void => {
    if (socket === ended) drop(error);
  };

  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket ??= openSocket(port, { data: onData, end: onEnd });
        socket.write(request, 'latin1');
      }),
    close: () => drop(new Error('the connection was closed')),
  };
};
