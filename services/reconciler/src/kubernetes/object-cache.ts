import { type Clock, type Logger, type Loop, type Metrics } from '@millrace/platform';
import { type Change, type Kind, type KubernetesApi, KubernetesError, type KubernetesObject } from './api.ts';

export interface ObjectCacheOptions {
  api: KubernetesApi;
  kind: Kind;
  /** How often everything is listed anew, in milliseconds. */
  resyncMs: number;
  /** Everything was listed anew: also what looks unchanged may have to be looked at, since the record may differ. */
  onListed: () => Promise<void>;
  /** The object of this name changed, or is gone. */
  onChanged: (name: string) => void;
  /** Whether an object is to be kept when a watch told that it was deleted, until `forget`. */
  outlives: (object: KubernetesObject) => boolean;
  /** The same of one that a list does not have any more; what became of it since it was last seen, nobody tells. */
  outlivesUnseen: (object: KubernetesObject) => boolean;
  /** The object of this name is now so; null: it is gone. */
  onKnown: (name: string, object: KubernetesObject | null) => void;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** The objects of one kind as they were last seen. */
export interface ObjectCache {
  get(name: string): KubernetesObject | null;
  names(): string[];
  /** The first of this name that was deleted and is to be kept. */
  gone(name: string): KubernetesObject | null;
  /** Nothing is left to do for an object that is gone. */
  forget(object: KubernetesObject): void;
  /** Takes what the API server answered to a write, so that the next look does not wait for the watch to tell. */
  put(object: KubernetesObject): void;
  loop: Loop;
}

/** After a watch that did not even last that long, the next waits that long, in milliseconds. */
const shortestWatchMs = 1_000;

/**
 * Follows the objects of one kind: lists them, watches for changes from there on, and begins anew whenever the watch
 * ends, for whatever reason (the server's restart, a version too old, a cut or silent connection), at the latest after
 * the resync. So nothing depends on how a watch ended, and what a watch kept back is noticed within one resync, and
 * the time limit of one request, where the connection is dead that lists.
 */
export function createObjectCache(options: ObjectCacheOptions): ObjectCache {
  const { api, kind, resyncMs, onListed, onChanged, clock, logger, metrics } = options;
  const objects = new Map<string, KubernetesObject>();
  const gone = new Set<KubernetesObject>();
  const lists = metrics.counter('millrace_kubernetes_lists_total', 'How often all objects were listed.', [
    'kind',
  ]);
  const lost = metrics.counter('millrace_kubernetes_watches_lost_total', 'Watches that ended early.', [
    'kind',
    'code',
  ]);
  const count = metrics.gauge('millrace_kubernetes_objects', 'Objects that are followed.', ['kind']);

  const know = (name: string, object: KubernetesObject | null): void => {
    if (object === null) objects.delete(name);
    else objects.set(name, object);
    count.set(objects.size, { kind });
    options.onKnown(name, object);
  };

  const take = ({ type, object }: Change): void => {
    const { name } = object.metadata;
    know(name, type === 'changed' ? object : null);
    if (type === 'deleted' && options.outlives(object)) gone.add(object);
    onChanged(name);
  };

  const replace = async (listed: readonly KubernetesObject[]): Promise<void> => {
    const there = new Set(listed.map(({ metadata: { uid } }) => uid));
    const missing = [...objects.values()].filter(({ metadata: { uid } }) => !there.has(uid));
    for (const { metadata } of missing) know(metadata.name, null);
    for (const object of listed) know(object.metadata.name, object);
    await onListed();
    for (const object of missing.filter(options.outlivesUnseen)) {
      gone.add(object);
      onChanged(object.metadata.name);
    }
  };

  const watch = async (resourceVersion: string, signal: AbortSignal): Promise<void> => {
    const over = new AbortController();
    const resync = clock.sleep(resyncMs, AbortSignal.any([signal, over.signal])).then(
      () => over.abort(),
      () => undefined,
    );
    const either = AbortSignal.any([signal, over.signal]);
    try {
      await api.watch(kind, { resourceVersion, onChange: take }, either);
    } catch (error) {
      if (either.aborted) return;
      const code = error instanceof KubernetesError ? error.code : 'unavailable';
      lost.inc({ kind, code });
      logger.info({ err: error, kind, code }, 'watch lost; listing anew');
    } finally {
      over.abort();
      await resync;
    }
  };

  return {
    get: (name) => objects.get(name) ?? null,
    names: () => [...objects.keys()],
    gone: (name) => [...gone].find(({ metadata }) => metadata.name === name) ?? null,
    forget: (object) => {
      gone.delete(object);
    },
    put: (object) => {
      const known = objects.get(object.metadata.name);
      if (known?.metadata.uid !== object.metadata.uid) return;
      if (versionOf(object) > versionOf(known)) know(object.metadata.name, object);
    },
    loop: {
      name: `kubernetes-watch-${kind.toLowerCase()}`,
      run: async (signal, done) => {
        while (!signal.aborted) {
          const { objects: listed, resourceVersion } = await api.list(kind, signal);
          lists.inc({ kind });
          await replace(listed);
          done();
          const startedAt = clock.now().getTime();
          await watch(resourceVersion, signal);
          const restMs = shortestWatchMs - (clock.now().getTime() - startedAt);
          if (restMs > 0) await clock.sleep(restMs, signal).catch(() => undefined);
        }
      },
    },
  };
}

/** Versions of one resource rise (Kubernetes 1.35 promises so; etcd's revisions always did). */
const versionOf = ({ metadata }: KubernetesObject): bigint => BigInt(metadata.resourceVersion);
