import { ProblemError, type WebhookEndpoint } from '@millrace/contract';
import { newWebhookSecret, sealWebhookSecret } from '@millrace/domain';
import {
  attemptsUnderWay,
  createEndpoint,
  deleteEndpoint,
  deliveryResource,
  endpointResource,
  findEndpoint,
  listDeliveries,
  listEndpoints,
  queueTestEvent,
  redeliver,
  replaceSecret,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { readPage } from '../paging.ts';
import { assertEndpointUrl } from './endpoint-url.ts';

type WebhookHandlers = Pick<
  ApiHandlers,
  | 'createWebhookEndpoint'
  | 'listWebhookEndpoints'
  | 'deleteWebhookEndpoint'
  | 'rotateWebhookSecret'
  | 'listWebhookDeliveries'
  | 'testWebhookEndpoint'
  | 'redeliverWebhook'
>;

export const webhookHandlers = (deps: FeatureDeps): WebhookHandlers => ({
  createWebhookEndpoint: async ({ project: { id: projectId, accountId }, body: { url, events } }) => {
    await assertEndpointUrl(url, deps.config);
    const signingSecret = newWebhookSecret();
    const seal = (endpointId: string): string => sealed(deps, signingSecret, endpointId);
    const endpoint = await deps.store.transaction((tx) =>
      createEndpoint(tx, { accountId, projectId, url, events, seal }),
    );
    return { ...endpointResource(endpoint), signingSecret };
  },

  listWebhookEndpoints: async ({ project }) => ({
    data: (await listEndpoints(deps.store, project.id)).map(endpointResource),
  }),

  deleteWebhookEndpoint: async ({ project: { id: projectId }, params: { endpointId } }) => {
    await deps.store.transaction((tx) => deleteEndpoint(tx, { projectId, endpointId }));
    return undefined;
  },

  rotateWebhookSecret: ({ project: { id: projectId }, params: { endpointId }, signal }) =>
    rotateSecret(deps, { projectId, endpointId, signal }),

  listWebhookDeliveries: async ({ project, params: { endpointId }, query }) => {
    await assertEndpoint(deps, project.id, endpointId);
    return readPage(deps.config.CURSOR_KEYS, {
      scope: { operationId: 'listWebhookDeliveries', owner: project.id, filters: { endpointId } },
      query,
      read: (limit, after) => listDeliveries(deps.store, endpointId, { limit, after }),
      toResource: deliveryResource,
    });
  },

  testWebhookEndpoint: async ({ project: { id: projectId, accountId }, params: { endpointId } }) => {
    const delivery = await deps.store.transaction((tx) =>
      queueTestEvent(tx, { accountId, projectId, endpointId }),
    );
    return deliveryResource(delivery);
  },

  redeliverWebhook: async ({ project: { id: projectId }, params: { endpointId, deliveryId } }) => {
    const delivery = await deps.store.transaction((tx) =>
      redeliver(tx, { projectId, endpointId, deliveryId }),
    );
    return deliveryResource(delivery);
  },
});

const sealed = ({ config }: FeatureDeps, secret: string, endpointId: string): string =>
  sealWebhookSecret(secret, endpointId, config.WEBHOOK_SECRET_KEYS);

async function assertEndpoint({ store }: FeatureDeps, projectId: string, endpointId: string): Promise<void> {
  if ((await findEndpoint(store, projectId, endpointId)) === null) throw new ProblemError('not_found');
}

const pollMs = 50;

/**
 * From the return on nothing goes out with the old secret (contract "Webhook endpoints"): attempts claimed since
 * the commit have the new one, those under way then are waited for. They end within 10 s, or their lease does.
 */
async function rotateSecret(
  deps: FeatureDeps,
  input: { projectId: string; endpointId: string; signal: AbortSignal },
): Promise<WebhookEndpoint> {
  const { projectId, endpointId, signal } = input;
  const { store, clock } = deps;
  const signingSecret = newWebhookSecret();
  const endpoint = await replaceSecret(store, {
    ...{ projectId, endpointId },
    sealed: sealed(deps, signingSecret, endpointId),
  });
  const old = new Set(await attemptsUnderWay(store, endpointId));
  while (old.size > 0) {
    await clock.sleep(pollMs, signal);
    const still = new Set(await attemptsUnderWay(store, endpointId));
    for (const claim of old) if (!still.has(claim)) old.delete(claim);
  }
  return { ...endpointResource(endpoint), signingSecret };
}
