// The load generator as the benchmark sees it: a child process that takes one order at a time.
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { LoadNews, LoadOrder, LoadReport } from './load-orders.ts';

export type Window = { opened(): void; closed(): void };

export type LoadGenerator = {
  pid: number;
  /** Carries out an order; `window` is told when the timed part begins and ends. */
  run(order: LoadOrder, window: Window): Promise<LoadReport>;
  close(): void;
};

const follow = (child: ChildProcess, order: LoadOrder, window: Window): Promise<LoadReport> =>
  new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      child.off('message', onNews);
      child.off('exit', onExit);
      act();
    };
    const onNews = (news: LoadNews): void => {
      if (news.kind === 'opened') window.opened();
      else if (news.kind === 'closed') window.closed();
      else if (news.kind === 'done') settle(() => resolve(news.report));
      else settle(() => reject(new Error(`The load generator failed: ${news.reason}`)));
    };
    const onExit = () => settle(() => reject(new Error('The load generator ended.')));
    child.on('message', onNews);
    child.on('exit', onExit);
    child.send(order);
  });

/** Starts the load generator; it ends with `signal`, with `close` and with this process. */
export const startLoadGenerator = (signal: AbortSignal): LoadGenerator => {
  const child = fork(join(import.meta.dirname, 'load.ts'), { serialization: 'advanced' });
  const close = () => {
    child.kill('SIGKILL');
  };
  signal.addEventListener('abort', close);
  return {
    pid: child.pid ?? 0,
    run: (order, window) => {
      signal.throwIfAborted();
      return follow(child, order, window);
    },
    close,
  };
};
