import { apiKeyResource, createApiKey, listApiKeys, revokeApiKey } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';

type ApiKeyHandlers = Pick<ApiHandlers, 'createApiKey' | 'listApiKeys' | 'revokeApiKey'>;

export const apiKeyHandlers = ({ store, clock }: FeatureDeps): ApiKeyHandlers => ({
  createApiKey: async ({ project, body: { name, scope, expiresAt } }) => {
    const { key, value } = await store.transaction((tx) =>
      createApiKey(tx, {
        ...{ projectId: project.id, name, scope },
        expiresAt: expiresAt === undefined || expiresAt === null ? null : new Date(expiresAt),
        now: clock.now(),
      }),
    );
    return { ...apiKeyResource(key), value };
  },

  listApiKeys: async ({ project }) => ({
    data: (await listApiKeys(store, project.id, clock.now())).map(apiKeyResource),
  }),

  revokeApiKey: async ({ project, params }) => {
    await revokeApiKey(store, { projectId: project.id, keyId: params.keyId, now: clock.now() });
    return undefined;
  },
});
