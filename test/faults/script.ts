// The faults, one after the other, while the load runs.
import type { Stand } from './stand.ts';

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export type Step = { name: string; run(): Promise<void> };

const behave = async (stand: Stand, whatsapp: string): Promise<void> => {
  const answer = await fetch(`${stand.file().sim}/behaviour`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ whatsapp }),
  });
  if (!answer.ok) throw new Error(`the simulators refused the behaviour ${whatsapp}`);
};

const killed = (stand: Stand, name: string, signal: NodeJS.Signals = 'SIGKILL'): Step => ({
  name: `${signal === 'SIGKILL' ? 'kill -9' : 'restart'} ${name}`,
  run: async () => {
    await stand.back(name, stand.kill(name, signal));
  },
});

const provider = (stand: Stand, whatsapp: string, ms: number): Step => ({
  name: `the provider: ${whatsapp} for ${ms / 1000} s`,
  run: async () => {
    await behave(stand, whatsapp);
    await sleep(ms);
    await behave(stand, 'ok');
  },
});

const frozen = (stand: Stand, name: string, ms: number): Step => ({
  name: `stop ${name} for ${ms / 1000} s`,
  run: async () => {
    const pid = stand.kill(name, 'SIGSTOP');
    await sleep(ms);
    process.kill(pid, 'SIGCONT');
  },
});

/** Every fault the service must survive, in the order of the requirement. */
export const script = (stand: Stand): Step[] => [
  killed(stand, 'api'),
  ...['whatsapp', 'telegram', 'webhook', 'billing', 'analytics', 'whatsapp'].map((name) =>
    killed(stand, name),
  ),
  killed(stand, 'rabbitmq', 'SIGTERM'),
  killed(stand, 'rabbitmq'),
  killed(stand, 'redis', 'SIGTERM'),
  killed(stand, 'redis'),
  killed(stand, 'mysql', 'SIGTERM'),
  killed(stand, 'mysql'),
  frozen(stand, 'mysql', 10_000),
  provider(stand, 'timeout', 8_000),
  provider(stand, 'http_500', 8_000),
  provider(stand, 'accept_then_drop', 5_000),
];
