import { join } from 'node:path';
import { type Api, apiConfig, createApi } from '@millrace/api';
import { type Cdn, cdnConfig, createCdn } from '@millrace/cdn';
import { createEncoder, encoderConfig } from '@millrace/encoder';
import { type FolderObjectStore } from '@millrace/objects/folder';
import {
  createLogger,
  createMetrics,
  createOpsServer,
  loadConfig,
  type Logger,
  type Metrics,
  type OpsServer,
  type Service,
  systemClock,
} from '@millrace/platform';
import { createReconciler, reconcilerConfig } from '@millrace/reconciler';
import { createWebhooks, webhooksConfig } from '@millrace/webhooks';
import { type EmbeddedConfig } from '../config.ts';
import { type Secrets } from '../data-folder/secrets.ts';
import { type Development } from '../dev/development.ts';
import { type OpenRecord } from './record.ts';
import { serviceSettings } from './service-settings.ts';

/** What the services of one process share. */
export interface ServiceSetDeps {
  config: EmbeddedConfig;
  env: NodeJS.ProcessEnv;
  dataDir: string;
  secrets: Secrets;
  ports: { api: number; internal: number; cdn: number };
  urls: { api: string; cdn: string; docs: string };
  connectionString: string;
  record: OpenRecord;
  objects: FolderObjectStore;
  /** What `--dev` adds. */
  development: Development | undefined;
}

export interface ServiceSet {
  /** In the order of their start. */
  services: readonly Service[];
  api: Api;
  cdn: Cdn;
  /** Starts the operations server of each service; answers their addresses by service name. */
  listenOps(): Promise<{ [service: string]: string }>;
  closeOps(): Promise<void>;
}

/** An embedded encoder is found dead quickly: it died with everything else, and its work waits for the restart. */
const encoderLeaseMs = 15_000;
/** The bus log is transport: whoever has not read for this long starts from the record anyway. */
const busRetentionMs = 3 * 24 * 3_600_000;

/** All services over the PostgreSQL log and the folder store, each with settings, log and metrics of its own. */
export function createServiceSet(deps: ServiceSetDeps): ServiceSet {
  const { config, record, objects, secrets, ports, urls } = deps;
  const env = settings(deps);
  const parts = (name: string, first = false): { logger: Logger; metrics: Metrics } => ({
    logger: createLogger({ service: name, level: config.LOG_LEVEL }),
    metrics: createMetrics({ service: name, process: first }),
  });
  const shared = { store: record.store, bus: record.bus, objects, clock: systemClock };
  const own = {
    api: parts('api', true),
    cdn: parts('cdn'),
    encoder: parts('encoder'),
    reconciler: parts('reconciler'),
    webhooks: parts('webhooks'),
  };

  const site = deps.development?.site;
  const api = createApi({
    ...{ ...shared, ...own.api, config: loadConfig(apiConfig, env) },
    ...(site === undefined ? {} : { site }),
  });
  const cdn = createCdn({
    ...shared,
    ...own.cdn,
    config: loadConfig(cdnConfig, env),
    internal: { url: `http://${config.MILLRACE_HOST}:${ports.internal}`, secret: secrets.internalSecret },
  });
  const encoder = createEncoder({ ...shared, ...own.encoder, config: loadConfig(encoderConfig, env) });
  const reconciler = createReconciler({
    ...shared,
    ...own.reconciler,
    config: loadConfig(reconcilerConfig, env),
    connectionString: deps.connectionString,
    chores: () => [
      {
        name: 'prune-bus-log',
        everyMs: 600_000,
        run: async () => (await record.bus.prune(new Date(Date.now() - busRetentionMs))).messages,
      },
    ],
  });
  const webhooks = createWebhooks({
    ...shared,
    ...own.webhooks,
    config: loadConfig(webhooksConfig, env),
    connectionString: deps.connectionString,
  });
  const services = [reconciler, api, cdn, encoder, webhooks];
  const ops = new Map<string, OpsServer>(
    services.map((service) => [
      service.name,
      createOpsServer({
        service,
        ...own[service.name as keyof typeof own],
        host: config.MILLRACE_HOST,
        port: 0,
      }),
    ]),
  );
  return {
    services,
    api,
    cdn,
    listenOps: async () => {
      const urlsByName: { [service: string]: string } = {};
      for (const [name, server] of ops) {
        urlsByName[name] = `http://${config.MILLRACE_HOST}:${(await server.listen()).port}`;
      }
      return urlsByName;
    },
    closeOps: async () => {
      await Promise.all([...ops.values()].map((server) => server.close()));
    },
  };

  /** The environment with what the data folder decides put in. */
  function settings({ dataDir, development }: ServiceSetDeps): NodeJS.ProcessEnv {
    return {
      ENCODER_LEASE_MS: String(encoderLeaseMs),
      ENCODER_SCRATCH_DIR: join(dataDir, 'scratch'),
      // Nobody else delivers from this record: what an earlier run left is taken up at once.
      WEBHOOKS_WORKER: 'embedded',
      ...deps.env,
      ...serviceSettings({ host: config.MILLRACE_HOST, ports, urls, secrets }),
      ...development?.settings,
    };
  }
}
