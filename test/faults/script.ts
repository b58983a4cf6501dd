// The faults, one after the other, while the load runs.
import { control } from '../support/control.ts';
import type { Stand } from './stand.ts';

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export type Step = { name: string; run(): Promise<void> };

type Channel = 'whatsapp' | 'telegram';

const killed = (stand: Stand, name: string, signal: NodeJS.Signals = 'SIGKILL'): Step => ({
  name: `${signal === 'SIGKILL' ? 'kill -9' : 'restart'} ${name}`,
  run: async () => {
    await stand.back(name, stand.kill(name, signal));
  },
});

const provider = (stand: Stand, channel: Channel, behaviour: string, ms: number): Step => ({
  name: `${channel}: ${behaviour} for ${ms / 1000} s`,
  run: async () => {
    const behave = (name: string) =>
      control(stand.file().sim, 'PUT', '/behaviour', { [channel]: name });
    await behave(behaviour);
    await sleep(ms);
    await behave('ok');
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
  provider(stand, 'whatsapp', 'timeout', 8_000),
  provider(stand, 'whatsapp', 'http_500', 8_000),
  provider(stand, 'whatsapp', 'accept_then_drop', 5_000),
  killed(stand, 'telegram'),
  provider(stand, 'telegram', 'timeout', 8_000),
  provider(stand, 'telegram', 'http_500', 8_000),
];
