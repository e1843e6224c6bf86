import {
  type OperationId,
  type Routes,
  type UploadTokenResource,
  type WebhookDelivery,
} from '@millrace/contract';
import { seedVideo } from './seed-video.ts';
import { createTenant, type Tenant } from './test-api.ts';
import { sent, type UploadBench } from './upload-bench.ts';

/** Operations below `/v1/projects/{projectId}`. */
export type ProjectOperation = {
  [K in OperationId]: Routes[K]['path'] extends `/v1/projects/{projectId}${string}` ? K : never;
}[OperationId];

/** A project that has one of everything that has an id. */
export interface Estate {
  tenant: Tenant;
  domain: string;
  /** A fresh upload token for `domain`. */
  uploadToken: string;
  /** By the names that paths have. */
  ids: Readonly<Record<string, string>>;
  /** A body that each operation accepts; null: it takes none. */
  bodies: Readonly<Record<ProjectOperation, object | string | null>>;
}

let estates = 0;

/**
 * Builds one by the API itself, in a project of its own.
 * @param options.owner whose account it is in; a new one unless told
 * @param options.empty without videos, so that the project can be deleted
 */
export async function createEstate(
  bench: UploadBench,
  { owner, empty = false }: { owner?: Tenant; empty?: boolean } = {},
): Promise<Estate> {
  const { api } = bench;
  const { operator } = api;
  const tenant = owner === undefined ? await createTenant(api) : await withNewProject(bench, owner);
  const { projectId, full } = tenant;
  const domain = `estate${++estates}.example.com`;
  const ask = async <Body>(request: string, body?: object | string): Promise<Body> =>
    (await api.ask<Body>(request.replace(' ', ` /v1/projects/${projectId}/`), { bearer: full, body })).body;
  const { id: domainId } = await operator.addDomain({ projectId, hostname: domain, verified: true });
  const { id: keyId } = await operator.createApiKey({ projectId, name: 'Spare', scope: 'full' });
  const { token: uploadToken } = await ask<UploadTokenResource>('POST upload-tokens', { domain });
  const endpoint = { url: 'https://93.184.216.34/hook', events: ['video.ready'] };
  const { id: endpointId } = await ask<{ id: string }>('POST webhook-endpoints', endpoint);
  const { id: deliveryId } = await ask<WebhookDelivery>(`POST webhook-endpoints/${endpointId}/test`);
  const { upload, parts } = empty ? { upload: { id: '' }, parts: [] } : await sent(bench, tenant);
  const videoId = empty ? '' : await seedVideo(api.store, tenant);
  if (!empty) await ask(`PUT videos/${videoId}/captions/en`, captions);
  return {
    ...{ tenant, domain, uploadToken },
    ids: { projectId, videoId, uploadId: upload.id, domainId, keyId, endpointId, deliveryId },
    bodies: bodiesFor({ domain, parts, endpoint }),
  };
}

/** The same account and session, another project and its keys. */
async function withNewProject({ api }: UploadBench, owner: Tenant): Promise<Tenant> {
  const { id: projectId } = await api.operator.createProject({ accountId: owner.accountId, name: 'Next' });
  const key = async (scope: 'full' | 'playback'): Promise<string> =>
    (await api.operator.createApiKey({ projectId, name: scope, scope })).value;
  return { ...owner, projectId, full: await key('full'), playback: await key('playback') };
}

const captions = 'WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n';

const bodiesFor = (of: { domain: string; parts: unknown; endpoint: object }): Estate['bodies'] => ({
  getProject: null,
  updateProject: { name: 'Renamed' },
  deleteProject: null,
  createApiKey: { name: 'New' },
  listApiKeys: null,
  revokeApiKey: null,
  addDomain: { hostname: `new.${of.domain}` },
  listDomains: null,
  verifyDomain: null,
  removeDomain: null,
  createUploadToken: { domain: of.domain },
  startUpload: { sizeBytes: 1_000, contentType: 'video/mp4' },
  getUpload: null,
  completeUpload: { parts: of.parts },
  cancelUpload: null,
  getVideo: null,
  listVideos: null,
  updateVideo: { title: 'Renamed' },
  deleteVideo: null,
  getIngestReport: null,
  listCaptions: null,
  putCaptions: captions,
  deleteCaptions: null,
  createPlaybackToken: { domain: of.domain },
  createPreviewToken: null,
  createReport: { reason: 'copyright' },
  createWebhookEndpoint: of.endpoint,
  listWebhookEndpoints: null,
  deleteWebhookEndpoint: null,
  rotateWebhookSecret: null,
  listWebhookDeliveries: null,
  testWebhookEndpoint: null,
  redeliverWebhook: null,
});

/** A path with its parameters filled in; captions are of English. */
export const pathWith = (path: string, ids: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = name === 'language' ? 'en' : ids[name];
    if (value === undefined) throw new Error(`an estate has no ${name}`);
    return value;
  });
