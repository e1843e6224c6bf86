import { accountRoutes } from './account.ts';
import { adminRoutes } from './admin.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { captionsRoutes } from './captions.ts';
import { demoRoutes } from './demo.ts';
import { docsRoutes } from './docs.ts';
import { domainRoutes } from './domains.ts';
import { healthRoutes } from './health.ts';
import { internalRoutes } from './internal.ts';
import { playbackRoutes } from './playback.ts';
import { phoneRoutes } from './phone.ts';
import { projectRoutes } from './projects.ts';
import { reportRoutes } from './reports.ts';
import { ssoRoutes } from './sso.ts';
import { uploadTokenRoutes } from './upload-tokens.ts';
import { uploadRoutes } from './uploads.ts';
import { videoRoutes } from './videos.ts';

import { webhookRoutes } from './webhooks.ts';

export * from './route.ts';

/** Every route of the API by its operation id: the one source of validation, documentation and client. */
export const routes = {
  ...healthRoutes,
  ...docsRoutes,
  ...projectRoutes,
  ...apiKeyRoutes,
  ...domainRoutes,
  ...uploadTokenRoutes,
  ...uploadRoutes,
  ...videoRoutes,
  ...captionsRoutes,
  ...playbackRoutes,
  ...webhookRoutes,
  ...reportRoutes,
  ...demoRoutes,
  ...accountRoutes,
  ...phoneRoutes,
  ...ssoRoutes,
  ...adminRoutes,
  ...internalRoutes,
};
export type Routes = typeof routes;
export type OperationId = keyof Routes;
