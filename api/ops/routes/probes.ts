// What machines ask the ops listener: the metrics of all processes, and whether this one lives and is ready.

import { version } from '../../../lib/kernel/version.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { contentType, metricsText } from '../../../lib/pulse/merge.ts';
import { queueMetrics } from '../../../lib/pulse/queues.ts';
import { opsText } from '../route.ts';

const json = (status: number, body: object) => ({
  ...{ status, type: 'application/json', body: JSON.stringify(body) },
});

const metrics = opsText({
  path: '/metrics',
  summary: 'The metrics of all processes, for Prometheus.',
  respond: async (app) => {
    const [pulses, queues] = await Promise.all([
      // Without Redis nobody knows of the others: this process still says that Redis is away.
      app.pulses.readPulses().catch(app.heart.own),
      // Without the broker nobody knows the queues; TesseraEngineAway says why.
      app.figures.now().then(
        (figures) => figures.queues,
        () => [],
      ),
    ]);
    return { type: contentType, body: await metricsText(pulses, queueMetrics(queues)) };
  },
});

const live = opsText({
  path: '/live',
  summary: 'Liveness: this process answers. Asks no engine: restarting it would mend none.',
  respond: () => Promise.resolve(json(200, { data: { status: 'ok', version } })),
});

/** Ready: the engines a send needs answer, and the process is not ending. */
const readiness = async ({ health, activity }: OpsApp) => {
  if (activity.stopping) return { ready: false, status: 'stopping' };
  const { checks, canSend } = await health.check();
  const engines = Object.fromEntries(
    Object.entries(checks).map(([engine, { status }]) => [engine, status]),
  );
  return { ready: canSend, status: canSend ? 'ok' : 'down', engines };
};

const ready = opsText({
  path: '/ready',
  summary: 'Readiness: 200 while sends are possible, 503 when not and as soon as the process ends.',
  respond: async (app) => {
    const { ready: isReady, ...data } = await readiness(app);
    return json(isReady ? 200 : 503, { data });
  },
});

export const probeRoutes = [metrics, live, ready];
