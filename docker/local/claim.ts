// One command at a time in a state folder: a claim that ends with the process, however that ends.
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Claims a folder for this process; false when a living process has it.
 * The claim is a listener on an abstract socket (unix(7)), which the kernel takes away with us.
 * Elsewhere than on Linux there is none and every claim is granted.
 */
export const claim = (folder: string): Promise<boolean> => {
  if (process.platform !== 'linux') return Promise.resolve(true);
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 40);
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(`\0tessera-${name}`, () => resolve(true));
    server.unref();
  });
};
