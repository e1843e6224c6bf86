export { ApiError } from './api-error.ts';
export { type Client, type ClientOptions, createClient } from './client.ts';
export {
  verifyWebhook,
  type WebhookEvent,
  WebhookVerificationError,
  type WebhookVerificationCode,
} from './verify-webhook.ts';
