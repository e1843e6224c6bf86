export { type WebhooksConfig, webhooksConfig } from './config.ts';
export { createWebhooks, type WebhooksDeps } from './service.ts';
