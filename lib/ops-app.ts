// The composition root of the ops process: what operators look at and do; it takes no sends and no jobs.
import { createHealth } from './health.ts';
import { type AppOptions, type House, openHouse } from './house.ts';
import { createHttp } from './infra/http.ts';
import { createManagement } from './infra/management.ts';
import { createLetters } from './infra/queue/letters.ts';
import { repeat } from './kernel/chore.ts';
import { version } from './kernel/version.ts';
import { createAuditStore } from './ops/audit-store.ts';
import { createFigureBoard } from './ops/figures.ts';
import { createRingStore } from './ops/ring-store.ts';
import { createRuns } from './ops/runs.ts';

const managementTimeoutMs = 2_000;
const sampleEveryMs = 5_000;

/** The broker's own figures, when its management API is named. */
const openBrokerView = ({ config }: House) => {
  const http = createHttp({ timeoutMs: managementTimeoutMs, connections: 2 });
  const { brokerManagementUrl: url, amqpUrls } = config;
  const [amqpUrl = ''] = amqpUrls.split(',');
  return { http, management: url === '' ? undefined : createManagement({ http, url, amqpUrl }) };
};

/** The ops process. */
export const createOpsApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { redis, db, config, log } = house;
  const { http, management } = openBrokerView(house);
  const letters = createLetters(house);
  const ring = createRingStore(redis, config.keyPrefix);
  const audit = createAuditStore(db);
  const runs = createRuns({ ...house, letters, audit });
  const figures = createFigureBoard({ ...house, management, letters, ring });
  const sampler = repeat(figures.sample, sampleEveryMs, log);
  runs.start();
  sampler.start();
  return {
    ...house,
    ...{ version, letters, ring, audit, runs, figures },
    health: createHealth(house),
    close: async () => {
      await Promise.all([runs.stop(), sampler.stop()]);
      await house.close();
      await http.close();
    },
  };
};

export type OpsApp = Awaited<ReturnType<typeof createOpsApp>>;
