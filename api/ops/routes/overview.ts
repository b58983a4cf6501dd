// Who is logged in, the engines and channels at a glance, and the processes with their clocks.

import { inTimeOrNull } from '../../../lib/kernel/in-time.ts';
import { version } from '../../../lib/kernel/version.ts';
import type { OpsApp } from '../../../lib/ops-app.ts';
import { opsRoute } from '../route.ts';

export const session = opsRoute({
  ...{ method: 'GET', path: '/ops/api/session' },
  summary: 'Who asks, and what the forms of a browser must carry in X-CSRF-Token.',
  handle: async (_, { caller }) => ({ actor: caller.actor, csrf: caller.csrf ?? null, version }),
});

/** The engines are told even when Redis, which knows the channels, keeps silent. */
const patienceMs = 1_500;

export const health = opsRoute({
  ...{ method: 'GET', path: '/ops/api/health' },
  summary: 'Whether the engines answer this process, and how the channels are.',
  handle: async (app) => {
    const { checks, canSend } = await app.health.check();
    const channels = await inTimeOrNull(app.health.channels(), patienceMs);
    return { can_send: canSend, checks, channels };
  },
});

const iso = (ms: number): string => new Date(ms).toISOString();

const processView = (pulse: Awaited<ReturnType<OpsApp['pulses']['readPulses']>>[number]) => ({
  id: pulse.id,
  name: pulse.name,
  host: pulse.host,
  pid: pulse.pid,
  version: pulse.version,
  state: pulse.state,
  silent_ms: pulse.silentMs,
  started_at: iso(pulse.startedAt),
  seen_at: iso(pulse.at),
  rss_bytes: pulse.rssBytes,
  heap_used_bytes: pulse.heapUsedBytes,
  cpu: pulse.cpu,
  event_loop_p99_ms: pulse.eventLoopP99Ms,
  connected: pulse.connected,
  doing: pulse.doing,
  clock_offsets_ms: pulse.clockOffsets,
  forwarded_ignored: pulse.forwardedIgnored ?? false,
});

export const processes = opsRoute({
  ...{ method: 'GET', path: '/ops/api/processes' },
  summary:
    'Which processes are alive, since when, with how much memory and delay, and what they do.',
  handle: async (app) => ({ items: (await app.pulses.readPulses()).map(processView) }),
});

export const overviewRoutes = [session, health, processes];
