// Process entry that makes the documentation: facts come in on standard input, the files go out on standard output.
// A process of its own, so that what making them takes is given back when they are made.
import { writeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { packFiles } from './pack.ts';
import type { Facts } from './page.ts';
import { renderSite } from './render.ts';

const write = (bytes: Buffer): void => {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      // A pipe that is full for the moment.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
};

if (import.meta.main) write(packFiles(renderSite(JSON.parse(await text(process.stdin)) as Facts)));
