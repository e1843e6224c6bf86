import { hostname } from 'node:os';
import {
  ApiException,
  CustomObjectsApi,
  PatchStrategy,
  setHeaderMiddleware,
  Watch,
} from '@kubernetes/client-node';
import { z } from 'zod';
import {
  type Change,
  type Kind,
  type KubernetesApi,
  KubernetesError,
  type KubernetesErrorCode,
  type KubernetesObject,
  kubernetesObject,
  type ObjectEvent,
} from './api.ts';
import { siblingName } from './object-names.ts';
import { SharedConnections } from './shared-connections.ts';

const group = 'millrace.dev';
const version = 'v1alpha1';
const plurals: Record<Kind, string> = { VideoHold: 'videoholds', Plan: 'plans' };
const component = 'millrace-reconciler';

/** How long one request may take, in milliseconds; a connection that is silent for so long is given up. */
const requestMs = 10_000;
const pageSize = 500;

const objectList = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(kubernetesObject),
});

type RequestOptions = Parameters<CustomObjectsApi['patchNamespacedCustomObject']>[1];
type Options = (contentType?: string, signal?: AbortSignal) => RequestOptions;

export interface ClientNodeOptions {
  namespace: string;
  /** Path of a kubeconfig; without one the service account of the pod. */
  kubeconfig?: string | undefined;
}

/** The API server by `@kubernetes/client-node`. */
export function createClientNodeApi({ namespace, kubeconfig }: ClientNodeOptions): KubernetesApi {
  const config = new SharedConnections();
  if (kubeconfig === undefined) config.loadFromCluster();
  else config.loadFromFile(kubeconfig);
  const objects = config.makeApiClient(CustomObjectsApi);
  const closing = new AbortController();
  const at = (kind: Kind) => ({ group, version, namespace, plural: plurals[kind] });

  const translated = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      // Where one connection has gone dead the others have too: nobody has to find that out of each.
      if (isSilence(error)) config.renew();
      throw translate(error);
    }
  };
  /** Gives up after a time; a patch is a merge (RFC 7396) unless told. */
  const options: Options = (contentType = PatchStrategy.MergePatch, signal) => {
    const limit = [closing.signal, AbortSignal.timeout(requestMs), ...(signal === undefined ? [] : [signal])];
    const header = setHeaderMiddleware('Content-Type', contentType);
    const middleware: typeof header = {
      pre: (request) => {
        request.setSignal(AbortSignal.any(limit));
        return header.pre(request);
      },
      post: (response) => header.post(response),
    };
    return { middleware: [middleware], middlewareMergeStrategy: 'append' as const };
  };

  return {
    namespace,
    list: (kind, signal) =>
      translated(async () => {
        const found: KubernetesObject[] = [];
        for (let next: string | undefined; ;) {
          const page = objectList.parse(
            await objects.listNamespacedCustomObject(
              { ...at(kind), limit: pageSize, ...(next === undefined ? {} : { _continue: next }) },
              options('application/json', signal),
            ),
          );
          found.push(...page.items);
          next = page.metadata.continue;
          if (next === undefined || next === '') {
            return { objects: found, resourceVersion: page.metadata.resourceVersion };
          }
        }
      }),
    watch: async (kind, from, signal) => {
      await follow(new Watch(config), pathOf(at(kind)), from, AbortSignal.any([signal, closing.signal]));
    },
    writeStatus: (kind, { metadata: { name, uid } }, status) =>
      translated(async () => {
        // A uid beside a merged status would be taken for granted: the server ignores it there.
        const body = [
          { op: 'test', path: '/metadata/uid', value: uid },
          { op: 'add', path: '/status', value: status },
        ];
        return kubernetesObject.parse(
          await objects.patchNamespacedCustomObjectStatus(
            { ...at(kind), name, body },
            options(PatchStrategy.JsonPatch),
          ),
        );
      }),
    writeFinalizers: (kind, { metadata: { name, uid, finalizers: before } }, finalizers) =>
      translated(async () => {
        const path = '/metadata/finalizers';
        // The server applies it to what the object is by then: a change of something else does not stand in its way.
        const body = [
          { op: 'test', path: '/metadata/uid', value: uid },
          { op: 'test', path, value: before.length === 0 ? null : before },
          { op: 'add', path, value: finalizers },
        ];
        return kubernetesObject.parse(
          await objects.patchNamespacedCustomObject(
            { ...at(kind), name, body },
            options(PatchStrategy.JsonPatch),
          ),
        );
      }),
    tell: (event) => translated(() => tell(objects, event, options)),
    close: async () => {
      closing.abort();
      await config.close();
    },
  };
}

/** Hands the changes of a watch on until it ends. */
async function follow(
  watch: Watch,
  path: string,
  { resourceVersion, onChange }: { resourceVersion: string; onChange: (change: Change) => void },
  signal: AbortSignal,
): Promise<void> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<undefined>();
  const onLine = (type: string, line: unknown): void => {
    if (signal.aborted || type === 'BOOKMARK') return;
    if (type === 'ERROR') {
      reject(refusal(line));
      return;
    }
    const { data: object } = kubernetesObject.safeParse(line);
    // What is thrown here, nobody hears of.
    if (object === undefined) reject(new KubernetesError('refused', 'a change cannot be read'));
    else onChange({ type: type === 'DELETED' ? 'deleted' : 'changed', object });
  };
  const onEnd = (error: unknown): void => {
    if (isSilence(error) || error === null || error === undefined) resolve(undefined);
    else reject(translate(error));
  };
  const begun = watch.watch(path, { resourceVersion, allowWatchBookmarks: true }, onLine, onEnd);
  begun.catch(onEnd);
  const stop = (): void => resolve(undefined);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  await ended.finally(() => {
    signal.removeEventListener('abort', stop);
    // What would end it is there only once the server has answered, for which nobody waits.
    void begun.then((controller) => controller.abort()).catch(() => undefined);
  });
}

/**
 * Nothing was said for a time. Of a watch (30 s) that may be all there is to say, or the connection is gone: listing
 * anew tells.
 */
const isSilence = (error: unknown): boolean => error instanceof DOMException && error.name === 'TimeoutError';

const pathOf = ({ namespace, plural }: { namespace: string; plural: string }): string =>
  `/apis/${group}/${version}/namespaces/${namespace}/${plural}`;

async function tell(
  objects: CustomObjectsApi,
  { kind, object, type, reason, message }: ObjectEvent,
  options: Options,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const events = { group: 'events.k8s.io', version: 'v1', namespace, plural: 'events' };
  const eventName = siblingName(name, uid, reason, message);
  const eventTime = new Date().toISOString().replace('Z', '000Z');
  const body = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: eventName, namespace },
    regarding: { apiVersion: `${group}/${version}`, kind, name, namespace, uid, resourceVersion },
    ...{ type, reason, note: message, action: 'Reconcile', eventTime },
    ...{ reportingController: component, reportingInstance: hostname() },
  };
  try {
    await objects.createNamespacedCustomObject({ ...events, body }, options('application/json'));
  } catch (error) {
    if (translate(error).code !== 'conflict') throw error;
    // It was told before, and happens again.
    const series = { count: 2, lastObservedTime: eventTime };
    await objects.patchNamespacedCustomObject({ ...events, name: eventName, body: { series } }, options());
  }
}

/** A `Status` in the place of an object. */
function refusal(line: unknown): KubernetesError {
  const status = z.object({ code: z.number(), message: z.string().default('') }).safeParse(line);
  return status.success
    ? new KubernetesError(codeOf(status.data.code), status.data.message)
    : new KubernetesError('unavailable', 'the watch ended with an error that says nothing');
}

function translate(error: unknown): KubernetesError {
  if (error instanceof KubernetesError) return error;
  const status =
    error instanceof ApiException ? error.code : (error as { statusCode?: number } | undefined)?.statusCode;
  const message = error instanceof Error ? error.message : 'the API server could not be asked';
  return new KubernetesError(codeOf(status), message, { cause: error });
}

function codeOf(status: number | undefined): KubernetesErrorCode {
  const known: Record<number, KubernetesErrorCode> = {
    401: 'forbidden',
    403: 'forbidden',
    404: 'not_found',
    409: 'conflict',
    410: 'gone',
    429: 'unavailable',
  };
  if (status === undefined) return 'unavailable';
  return known[status] ?? (status >= 400 && status < 500 ? 'refused' : 'unavailable');
}
