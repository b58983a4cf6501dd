// The composition root of the ops process: what operators look at and do; it takes no sends and no jobs.

import { createWhatsappManagement } from './channels/whatsapp-management.ts';
import { createHealth } from './health.ts';
import { type AppOptions, type House, openHouse } from './house.ts';
import { createHttp } from './infra/http.ts';
import { createManagement } from './infra/management.ts';
import { createLetters } from './infra/queue/letters.ts';
import { repeat } from './kernel/chore.ts';
import { version } from './kernel/version.ts';
import { createTrail } from './ops/audit.ts';
import { createAuditStore } from './ops/audit-store.ts';
import { createSharedQuality } from './ops/channels.ts';
import { createFigureBoard } from './ops/figures.ts';
import { createLogoutStore } from './ops/logout-store.ts';
import { createLookupStore } from './ops/lookup-store.ts';
import { createResealStore } from './ops/reseal-store.ts';
import { createRingStore } from './ops/ring-store.ts';
import { createRuns } from './ops/runs.ts';
import { createStopStore } from './ops/stop-store.ts';
import { createHeldPrefixes } from './pumping/held.ts';
import { createPumpingGuard } from './pumping/refuse.ts';
import { parseAllowed } from './pumping/rules.ts';

const managementTimeoutMs = 2_000;
const sampleEveryMs = 5_000;

/** The broker's own figures, when its management API is named. */
const openBrokerView = ({ config }: House) => {
  const http = createHttp({ timeoutMs: managementTimeoutMs, connections: 2 });
  const { brokerManagementUrl: url, amqpUrls } = config;
  const [amqpUrl = ''] = amqpUrls.split(',');
  return { http, management: url === '' ? undefined : createManagement({ http, url, amqpUrl }) };
};

/** The provider's word about numbers. */
const openProviderView = ({ config, clock }: House) => {
  const http = createHttp({ timeoutMs: managementTimeoutMs, connections: 2 });
  const management = createWhatsappManagement({
    http,
    baseUrl: config.whatsappBaseUrl,
    apiVersion: config.whatsappApiVersion,
    appId: config.whatsappAppId,
    appSecret: config.whatsappAppSecret,
  });
  return { http, management, sharedQuality: createSharedQuality({ config, management, clock }) };
};

/** The guard as the limits document reads it: it refuses nobody here. */
const openGuard = (house: House) => {
  const { config, evidence: store, log } = house;
  return createPumpingGuard({
    ...house,
    mode: house.platform.guardMode,
    allowed: parseAllowed(config.fraudAllowedAccounts, config.fraudAllowedPrefixes),
    held: createHeldPrefixes({ store, log }),
    onDecision: () => undefined,
  });
};

/** The ops process. */
export const createOpsApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { redis, db, config, clock, log } = house;
  const brokerView = openBrokerView(house);
  const { http, management, sharedQuality } = openProviderView(house);
  const guard = openGuard(house);
  await guard.start();
  const letters = createLetters(house);
  const ring = createRingStore(redis, config.keyPrefix);
  const audit = createAuditStore(db);
  const trail = createTrail({ ...house, audit });
  const stops = createStopStore(redis, config.keyPrefix);
  const runs = createRuns({ ...house, letters, audit, trail, stops });
  const figures = createFigureBoard({
    ...{ ...house, letters, ring },
    management: brokerView.management,
  });
  const sampler = repeat(figures.sample, sampleEveryMs, log);
  for (const chore of [trail, runs, sampler]) chore.start();
  // The past begins now, and not a step later.
  await figures.sample().catch(() => undefined);
  return {
    ...house,
    ...{ version, letters, ring, audit, trail, runs, figures, management, sharedQuality, guard },
    lookup: createLookupStore(db),
    reseals: createResealStore(db),
    logouts: createLogoutStore(redis, config.keyPrefix, clock),
    health: createHealth(house),
    close: async () => {
      guard.stop();
      await Promise.all([runs.stop(), sampler.stop()]);
      await trail.stop();
      await house.close();
      await Promise.all([http.close(), brokerView.http.close()]);
    },
  };
};

export type OpsApp = Awaited<ReturnType<typeof createOpsApp>>;
