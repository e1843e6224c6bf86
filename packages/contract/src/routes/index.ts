import { apiKeyRoutes } from './api-keys.ts';
import { domainRoutes } from './domains.ts';
import { healthRoutes } from './health.ts';
import { projectRoutes } from './projects.ts';

export * from './route.ts';

/** Every route of the API by its operation id: the one source of validation, documentation and client. */
export const routes = {
  ...healthRoutes,
  ...projectRoutes,
  ...apiKeyRoutes,
  ...domainRoutes,
};
export type Routes = typeof routes;
export type OperationId = keyof Routes;
