// A storm of logins, from a process of its own: each line on standard input is one, 200 at the same moment.
import { createInterface } from 'node:readline';

const [, , url = '', parallel = '200'] = process.argv;
let visitor = Date.now() % 60_000;

/** Everybody has another address, so that what is measured is the hashing and not the throttle. */
const logIn = async (): Promise<number> => {
  visitor += 1;
  const answer = await fetch(`${url}/v1/clients/login`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': `10.9.${(visitor >> 8) & 255}.${visitor & 255}`,
    },
    body: JSON.stringify({ email: `nobody${visitor}@tessera.example`, password: 'not a password' }),
  });
  await answer.arrayBuffer();
  return answer.status;
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line !== 'go') break;
  const statuses = await Promise.all(Array.from({ length: Number(parallel) }, logIn));
  process.stdout.write(`${JSON.stringify(Object.groupBy(statuses, String))}\n`);
}
