import { z } from 'zod';
import { eventTypes, webhookDelivery, webhookEndpoint } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes, listOf, pageOf, pageQuery } from './route.ts';

const path = '/v1/projects/{projectId}/webhook-endpoints';
const common = { tag: 'Webhooks', auth: ['key', 'session'], cors: 'dashboard' } as const;

export const webhookRoutes = defineRoutes({
  createWebhookEndpoint: {
    ...common,
    method: 'post',
    path,
    summary: 'Have events sent to an HTTPS address',
    description:
      'A project has at most five endpoints. The answer holds the signing secret, which is shown once; verify `Svc-Signature` with it.',
    body: z.strictObject({
      url: text({ max: 2_048 }).meta({
        description: 'https, a public host, port 443 or from 1024 on, no user info.',
        examples: ['https://hooks.example.com/millrace'],
      }),
      events: z
        .array(z.enum(eventTypes))
        .min(1)
        .refine((events) => new Set(events).size === events.length, 'has an event twice'),
    }),
    response: { status: 201, body: webhookEndpoint, description: 'The endpoint with its `signingSecret`.' },
    errors: ['endpoint_limit_reached'],
  },
  listWebhookEndpoints: {
    ...common,
    method: 'get',
    path,
    summary: 'List the webhook endpoints of a project',
    response: { status: 200, body: listOf(webhookEndpoint), description: 'All of them, without secrets.' },
  },
  deleteWebhookEndpoint: {
    ...common,
    method: 'delete',
    path: `${path}/{endpointId}`,
    summary: 'Delete a webhook endpoint; what waits for it fails',
    response: { status: 204, description: 'The endpoint is gone.' },
  },
  rotateWebhookSecret: {
    ...common,
    method: 'post',
    path: `${path}/{endpointId}/rotate-secret`,
    summary: 'Replace the signing secret',
    description:
      'The old secret signs nothing any more when the call returns, of waiting deliveries neither. It takes as long as attempts under way take to end, 10 seconds at most.',
    response: {
      status: 200,
      body: webhookEndpoint,
      description: 'The endpoint with its new `signingSecret`.',
    },
  },
  listWebhookDeliveries: {
    ...common,
    method: 'get',
    path: `${path}/{endpointId}/deliveries`,
    summary: 'The delivery log of an endpoint, newest first; kept for 30 days',
    query: z.object(pageQuery),
    response: { status: 200, body: pageOf(webhookDelivery), description: 'One page of deliveries.' },
  },
  testWebhookEndpoint: {
    ...common,
    method: 'post',
    path: `${path}/{endpointId}/test`,
    summary: 'Send a `webhook.test` event to an endpoint, whatever it subscribes to',
    response: { status: 202, body: webhookDelivery, description: 'The delivery, queued.' },
  },
  redeliverWebhook: {
    ...common,
    method: 'post',
    path: `${path}/{endpointId}/deliveries/{deliveryId}/redeliver`,
    summary: 'Send the event of a delivery once more',
    description:
      'One that is over gets a new delivery of the same event, marked by the header `Svc-Redelivery: true`; one that waits becomes due now.',
    response: { status: 202, body: webhookDelivery, description: 'The delivery that is now due.' },
    errors: ['delivery_in_progress'],
  },
});
