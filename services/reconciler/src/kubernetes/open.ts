import { type ProcessParts } from '@millrace/platform';
import { type KubernetesApi } from './api.ts';
import { createClientNodeApi } from './client-node-api.ts';
import { type KubernetesConfig } from './settings.ts';

/** The API server that the settings name; undefined when they name no namespace. */
export function openKubernetes(
  config: KubernetesConfig,
  { own }: Pick<ProcessParts, 'own'>,
): { api: KubernetesApi; resyncMs: number } | undefined {
  const { KUBERNETES_NAMESPACE: namespace, KUBECONFIG: kubeconfig } = config;
  if (namespace === undefined) return undefined;
  return {
    api: own(createClientNodeApi({ namespace, kubeconfig })),
    resyncMs: config.KUBERNETES_RESYNC_SECONDS * 1_000,
  };
}
