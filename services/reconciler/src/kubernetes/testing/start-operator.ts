import { createMemoryBus } from '@millrace/bus/memory';
import { createMetrics, type Logger, type Metrics, systemClock } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { createTestObjects } from '@millrace/testing';
import { createReconciler } from '../../service.ts';
import { type KubernetesApi } from '../api.ts';
import { createClientNodeApi } from '../client-node-api.ts';

export interface OperatorOptions {
  connectionString: string;
  kubeconfig: string;
  resyncMs: number;
  logger: Logger;
  /** What is between it and the API server. */
  through?: (api: KubernetesApi) => KubernetesApi;
}

/** A whole reconciler that stands for election, and is an operator while it leads. */
export async function startOperator({
  connectionString,
  kubeconfig,
  resyncMs,
  logger,
  through = (api) => api,
}: OperatorOptions): Promise<{ metrics: Metrics; stop(): Promise<void> }> {
  const metrics = createMetrics({ service: 'reconciler' });
  const store = createDatabase({ connectionString, logger });
  const bus = createMemoryBus();
  const objects = await createTestObjects();
  const api = createClientNodeApi({ namespace: 'default', kubeconfig });
  const reconciler = createReconciler({
    config: { RECONCILER_LEASE_MS: 1_000, DNS_SERVERS: [] },
    ...{ store, connectionString, bus, objects: objects.objects, clock: systemClock, logger, metrics },
    kubernetes: { api: through(api), resyncMs },
  });
  await reconciler.start(new AbortController().signal);
  return {
    metrics,
    stop: async () => {
      await reconciler.stop();
      await api.close();
      await bus.close();
      await objects.close();
      await store.close();
    },
  };
}
