import { z } from 'zod';

/** What the operator follows: resources of `millrace.dev/v1alpha1`. */
export type Kind = 'VideoHold' | 'Plan';

/** An object as the API server keeps it. `spec` and `status` are checked by who reads them. */
export const kubernetesObject = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    /** Rises with every change of `spec`. */
    generation: z.number().int(),
    resourceVersion: z.string(),
    creationTimestamp: z.string(),
    deletionTimestamp: z.string().optional(),
    finalizers: z.array(z.string()).default([]),
  }),
  spec: z.unknown(),
  status: z.unknown().optional(),
});

export type KubernetesObject = z.output<typeof kubernetesObject>;

/** What happened to an object, as a watch tells it. */
export type Change =
  { type: 'changed'; object: KubernetesObject } | { type: 'deleted'; object: KubernetesObject };

/** Something that `kubectl describe` shows beside an object. */
export interface ObjectEvent {
  kind: Kind;
  object: KubernetesObject;
  type: 'Normal' | 'Warning';
  /** CamelCase, for machines. */
  reason: string;
  message: string;
}

export type KubernetesErrorCode = 'conflict' | 'forbidden' | 'gone' | 'not_found' | 'refused' | 'unavailable';

/** The API server refused, or could not be asked. */
export class KubernetesError extends Error {
  override readonly name = 'KubernetesError';
  readonly code: KubernetesErrorCode;
  constructor(code: KubernetesErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What the operator needs of Kubernetes, in one namespace. Everything rejects with a `KubernetesError`. */
export interface KubernetesApi {
  readonly namespace: string;
  /** Every object of a kind, as of now, and the version of that moment. */
  list(kind: Kind, signal: AbortSignal): Promise<{ objects: KubernetesObject[]; resourceVersion: string }>;
  /**
   * Tells of changes after a version until the server ends the watch, nothing was said for long or the signal aborts
   * (resolves), the connection is lost (rejects) or the version is too old (`gone`).
   */
  watch(
    kind: Kind,
    from: { resourceVersion: string; onChange: (change: Change) => void },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Replaces the status of that very object, whatever else of it changed since it was read; `refused` when another of its
   * name was made since.
   */
  writeStatus(kind: Kind, object: KubernetesObject, status: object): Promise<KubernetesObject>;
  /** Replaces the finalizers of that very object; `refused` when they are not what they were when it was read. */
  writeFinalizers(
    kind: Kind,
    object: KubernetesObject,
    finalizers: readonly string[],
  ): Promise<KubernetesObject>;
  /** Tells an event; the same one again makes it one that happens repeatedly. */
  tell(event: ObjectEvent): Promise<void>;
  close(): Promise<void>;
}
