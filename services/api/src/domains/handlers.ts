import { addDomain, domainResource, listDomains, removeDomain } from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { normalizeHostname } from './hostname.ts';
import { verifyDomain } from './verify.ts';

type DomainHandlers = Pick<ApiHandlers, 'addDomain' | 'listDomains' | 'verifyDomain' | 'removeDomain'>;

export const domainHandlers = (deps: FeatureDeps): DomainHandlers => ({
  addDomain: async ({ project, body }) => {
    const hostname = normalizeHostname(body.hostname);
    const { id: projectId, accountId } = project;
    const domain = await deps.store.transaction((tx) =>
      addDomain(tx, { accountId, projectId, hostname, now: deps.clock.now() }),
    );
    return domainResource(domain);
  },

  listDomains: async ({ project }) => ({
    data: (await listDomains(deps.store, project.id)).map(domainResource),
  }),

  verifyDomain: async ({ project, params }) =>
    domainResource(await verifyDomain(deps, { projectId: project.id, domainId: params.domainId })),

  removeDomain: async ({ project, params }) => {
    await removeDomain(deps.store, project.id, params.domainId);
    return undefined;
  },
});
