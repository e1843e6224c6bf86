import { z } from 'zod';

/** Of a reconciler that is a Kubernetes operator too. */
export const kubernetesSettings = {
  /** Namespace whose `Plan` and `VideoHold` objects are followed; unset: none are, and Kubernetes is never asked. */
  KUBERNETES_NAMESPACE: z.string().min(1).max(63).optional(),
  /** A kubeconfig; unset: the service account of the pod. */
  KUBECONFIG: z.string().optional(),
  /**
   * How often all objects are listed anew, in seconds: what a silent connection kept back is noticed after that long,
   * and the 10 s after which a request by that connection is given up.
   */
  KUBERNETES_RESYNC_SECONDS: z.coerce.number().int().min(5).max(3_600).default(60),
};

export type KubernetesConfig = z.output<z.ZodObject<typeof kubernetesSettings>>;
