import { type OperationId } from '@millrace/contract';
import { type Receiver } from '../../demo/receiver.ts';

/** What a call is made of; the rest is left as the caller of it has it. */
export interface Input {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  /** A body that is no JSON. */
  raw?: string;
}

export interface Answered {
  status: number;
  body: Record<string, unknown>;
}

/** What the steps work with, and find on their way. */
export interface World {
  /** Values by the name of the path's parameter. */
  ids: Record<string, string>;
  hostname: string;
  receiver: Receiver;
  fileSize: number;
  /** Uploads the file to the parts of this upload; answers what the complete call names. */
  putParts(upload: Record<string, unknown>): Promise<unknown>;
  /** Adds a TXT record to the development zone. */
  addTxt(name: string, value: string): Promise<unknown>;
  found: Record<string, unknown>;
}

export interface Step {
  id: OperationId;
  input?: (world: World) => Input;
  /** The route's own success unless told. */
  status?: number;
  /** Asked again until the answer is so. */
  until?: (body: Record<string, unknown>) => boolean;
  after?: (body: Record<string, unknown>, world: World) => Promise<unknown> | undefined;
}

const keep =
  (name: string) =>
  (body: Record<string, unknown>, { ids }: World): undefined => {
    ids[name] = String(body['id']);
  };
const rows = (body: Record<string, unknown>): Record<string, unknown>[] =>
  body['data'] as Record<string, unknown>[];
const language = { language: 'ar' };

const upload: Step = {
  id: 'startUpload',
  input: ({ fileSize }) => ({ body: { title: 'By hand', sizeBytes: fileSize, contentType: 'video/mp4' } }),
  after: async (body, world) => {
    world.ids['uploadId'] = String(body['id']);
    world.ids['videoId'] = String((body['video'] as { id: unknown }).id);
    world.found['parts'] = await world.putParts(body);
  },
};

/** A life of a project, from its making to its end: every route that a session may call, in an order that works. */
export const steps: readonly Step[] = [
  { id: 'getMe' },
  { id: 'createProject', input: () => ({ body: { name: 'Site' } }), after: keep('projectId') },
  { id: 'listProjects', until: (body) => rows(body).length === 1 },
  { id: 'getProject' },
  { id: 'updateProject', input: () => ({ body: { name: 'Shop' } }) },
  {
    id: 'createApiKey',
    input: () => ({ body: { name: 'server', scope: 'playback' } }),
    after: keep('keyId'),
  },
  { id: 'listApiKeys', until: (body) => rows(body).length >= 1 },
  { id: 'revokeApiKey' },
  {
    id: 'addDomain',
    input: ({ hostname }) => ({ body: { hostname } }),
    after: (body, world) => {
      keep('domainId')(body, world);
      const { name, value } = body['verification'] as { name: string; value: string };
      return world.addTxt(name, value);
    },
  },
  { id: 'verifyDomain', until: ({ status }) => status === 'verified' },
  { id: 'listDomains', until: (body) => rows(body).length === 1 },
  { id: 'createUploadToken', input: ({ hostname }) => ({ body: { domain: hostname } }) },
  upload,
  { id: 'getUpload', until: ({ uploadedParts }) => (uploadedParts as unknown[]).length === 1 },
  { id: 'completeUpload', input: ({ found }) => ({ body: { parts: found['parts'] } }) },
  { id: 'getVideo', until: ({ status }) => status === 'ready' },
  { id: 'listVideos', input: () => ({ query: { q: 'by HAND' } }), until: (body) => rows(body).length === 1 },
  { id: 'updateVideo', input: () => ({ body: { title: 'Renamed' } }) },
  { id: 'getIngestReport' },
  {
    id: 'putCaptions',
    input: () => ({ params: language, raw: 'WEBVTT\n\n00:00.000 --> 00:01.000\nأهلا\n' }),
  },
  { id: 'listCaptions', until: (body) => rows(body).length === 1 },
  { id: 'deleteCaptions', input: () => ({ params: language }) },
  { id: 'createPlaybackToken', input: ({ hostname }) => ({ body: { domain: hostname } }) },
  { id: 'createPreviewToken' },
  { id: 'createReport', input: () => ({ body: { reason: 'to try it' } }) },
  {
    id: 'createWebhookEndpoint',
    input: ({ receiver }) => ({ body: { url: receiver.url, events: ['video.ready'] } }),
    after: keep('endpointId'),
  },
  { id: 'listWebhookEndpoints', until: (body) => rows(body).length === 1 },
  {
    id: 'rotateWebhookSecret',
    after: (body, { receiver }) => {
      receiver.trust(String(body['signingSecret']));
      return undefined;
    },
  },
  { id: 'testWebhookEndpoint', after: keep('deliveryId') },
  { id: 'listWebhookDeliveries', until: (body) => rows(body)[0]?.['status'] === 'delivered' },
  { id: 'redeliverWebhook' },
  { id: 'deleteWebhookEndpoint' },
  { id: 'getBillingPlan' },
  { id: 'listBillingPlans' },
  { id: 'joinWhitelist', input: () => ({ body: { planId: 'pro', email: 'buyer@example.com' } }) },
  { id: 'listWhitelist', until: (body) => rows(body).length === 1 },
  { id: 'checkout', status: 503 },
  {
    id: 'startPhoneVerification',
    input: () => ({ body: { phone: '+966501234567' } }),
    after: (body, { found }) => {
      found['challenge'] = body;
      return undefined;
    },
  },
  {
    id: 'verifyPhone',
    input: ({ found }) => {
      const { challengeId, testCode } = found['challenge'] as Record<string, unknown>;
      return { body: { challengeId, code: testCode } };
    },
    until: ({ phoneVerified }) => phoneVerified === true,
  },
  { id: 'deleteVideo' },
  { ...upload },
  { id: 'cancelUpload' },
  { id: 'removeDomain' },
  { id: 'deleteProject' },
  { id: 'signOut' },
];
