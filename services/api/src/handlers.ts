import { accountHandlers } from './account/handlers.ts';
import { adminHandlers } from './admin/handlers.ts';
import { apiKeyHandlers } from './api-keys/handlers.ts';
import { billingHandlers } from './billing/handlers.ts';
import { type ApiHandlers } from './calls.ts';
import { captionsHandlers } from './captions/handlers.ts';
import { demoHandlers } from './demo/handlers.ts';
import { type FeatureDeps } from './deps.ts';
import { docsHandlers } from './docs/handlers.ts';
import { domainHandlers } from './domains/handlers.ts';
import { healthHandlers } from './health/handlers.ts';
import { internalHandlers } from './internal/handlers.ts';
import { phoneHandlers } from './phone/handlers.ts';
import { playbackHandlers } from './playback/handlers.ts';
import { projectHandlers } from './projects/handlers.ts';
import { reportHandlers } from './reports/handlers.ts';
import { ssoHandlers } from './sso/handlers.ts';
import { uploadTokenHandlers } from './upload-tokens/handlers.ts';
import { uploadHandlers } from './uploads/handlers.ts';
import { videoHandlers } from './videos/handlers.ts';
import { webhookHandlers } from './webhooks/handlers.ts';

/** Every feature's handlers; the type checks that no operation of the route table is without one. */
export const apiHandlers = (deps: FeatureDeps): ApiHandlers => ({
  ...healthHandlers(deps),
  ...docsHandlers(deps),
  ...projectHandlers(deps),
  ...apiKeyHandlers(deps),
  ...domainHandlers(deps),
  ...uploadTokenHandlers(deps),
  ...uploadHandlers(deps),
  ...videoHandlers(deps),
  ...captionsHandlers(deps),
  ...playbackHandlers(deps),
  ...webhookHandlers(deps),
  ...reportHandlers(deps),
  ...demoHandlers(deps),
  ...accountHandlers(deps),
  ...phoneHandlers(deps),
  ...ssoHandlers(deps),
  ...billingHandlers(deps),
  ...adminHandlers(deps),
  ...internalHandlers(deps),
});
