import { ProblemError } from '@millrace/contract';
import { type Logger } from '@millrace/platform';
import {
  assertEpoch,
  createHoldCommands,
  type Database,
  type HoldReference,
  readKubernetesHold,
} from '@millrace/store';
import { type Reconciler } from '../loops/loop.ts';
import { type KubernetesApi } from './api.ts';
import { tellNews } from './events.ts';
import { type ObjectCache } from './object-cache.ts';
import {
  decideVideoHold,
  readSpec,
  type SeenVideoHold,
  type VideoHoldDecision,
  type VideoHoldStep,
} from './video-hold.ts';

/** What the reconcilers of objects act with, and the lease that what they write is guarded by. */
export interface ObjectDeps {
  api: KubernetesApi;
  store: Database;
  logger: Logger;
  lease: { lease: string; epoch: number };
}

/**
 * Names the hold of a `VideoHold`: by namespace and name, so that an object that is applied again takes the hold over
 * that it left behind.
 */
const reference = (object: SeenVideoHold['object'], videoId: string): HoldReference => ({
  videoId,
  source: 'kubernetes',
  reference: nameOf(object),
});

const nameOf = ({ metadata: { namespace, name } }: SeenVideoHold['object']): string => `${namespace}/${name}`;

/** Makes the record's holds what the `VideoHold` objects ask for, and their status what the record says. */
export function videoHoldReconciler(
  deps: ObjectDeps,
  cache: ObjectCache,
): Reconciler<string, SeenVideoHold | null, VideoHoldDecision> {
  const { api, store, lease } = deps;
  const holds = createHoldCommands(store, (tx) => assertEpoch(tx, lease));

  const step = async (object: SeenVideoHold['object'], next: VideoHoldStep): Promise<void> => {
    const actor = `kubernetes:${nameOf(object)}`;
    switch (next.type) {
      case 'finalizers':
        cache.put(await api.writeFinalizers('VideoHold', object, next.finalizers));
        break;
      case 'place': {
        const { videoId, reason, legal } = next.spec;
        await holds.place({ ...reference(object, videoId), reason, legal }, actor);
        break;
      }
      case 'lift':
        await holds.lift(reference(object, next.videoId), actor).catch((error: unknown) => {
          // It is gone with its video: nothing is left to lift.
          if (!(error instanceof ProblemError) || error.code !== 'not_found') throw error;
        });
        break;
      case 'forget':
        cache.forget(object);
        break;
      case 'status':
        cache.put(await api.writeStatus('VideoHold', object, next.status));
        await tellNews(deps, { kind: 'VideoHold', object, news: next.news });
    }
  };

  return {
    name: 'video-holds',
    list: () => Promise.resolve(cache.names()),
    nameOf: (name) => name,
    observe: async (name) => {
      const [there, gone] = [cache.get(name), cache.gone(name)];
      const object = gone ?? there;
      if (object === null) return null;
      const spec = readSpec(object);
      const record =
        spec === null
          ? { video: null, hold: null }
          : await readKubernetesHold(store, { videoId: spec.videoId, reference: nameOf(object) });
      if (gone === null) return { object, spec, record };
      const takenOver = there !== null && readSpec(there)?.videoId === spec?.videoId;
      return { object, spec, record, gone: { takenOver } };
    },
    decide: (seen, now) => (seen === null ? null : decideVideoHold(seen, now)),
    act: async ({ steps, again }, seen) => {
      if (seen === null) return false;
      for (const next of steps) await step(seen.object, next);
      return again;
    },
  };
}
