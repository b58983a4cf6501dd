// Requests as bytes on a socket, for what no HTTP client would send.
import { connect } from 'node:net';

export type RawAnswer = {
  status: number;
  headers: Map<string, string>;
  body: string;
};

export type RawRequest = {
  method: string;
  path: string;
  /** Header lines in order, repeated ones included; Host and Connection are added. */
  headers?: readonly (readonly [string, string])[];
  body?: string | Buffer;
};

const parse = (bytes: Buffer): RawAnswer => {
  const end = bytes.indexOf('\r\n\r\n');
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  return {
    status: Number(first.split(' ')[1] ?? 0),
    headers,
    body: bytes.subarray(end + 4).toString('utf8'),
  };
};

/** Sends one request as it stands (header values in Latin-1) and answers what came back. */
export const sendRaw = (url: string, request: RawRequest): Promise<RawAnswer> => {
  const { hostname, port, host } = new URL(url);
  const { method, path, headers = [], body = '' } = request;
  const content = Buffer.from(body);
  const named = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    'Connection: close',
    ...(named || content.length === 0 ? [] : [`Content-Length: ${content.length}`]),
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname);
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(parse(Buffer.concat(chunks))));
    socket.write(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content]));
  });
};
