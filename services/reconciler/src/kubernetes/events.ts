import { type Logger } from '@millrace/platform';
import { type Finding } from './conditions.ts';
import { type Kind, type KubernetesApi, type KubernetesObject } from './api.ts';

/** Tells what changed beside an object. An event that cannot be told changes nothing: the status says the same. */
export async function tellNews(
  { api, logger }: { api: KubernetesApi; logger: Logger },
  { kind, object, news }: { kind: Kind; object: KubernetesObject; news: readonly Finding[] },
): Promise<void> {
  for (const { type, status, reason, message } of news) {
    // On its way is no trouble.
    const isTrouble = status === 'False' && type !== 'Effective';
    const event = { kind, object, reason, message, type: isTrouble ? 'Warning' : 'Normal' } as const;
    await api.tell(event).catch((error: unknown) => {
      logger.warn({ err: error, kind, name: object.metadata.name, reason }, 'event not told');
    });
  }
}
