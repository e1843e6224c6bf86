import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  isInternal,
  type RouteDefinition,
  routes,
  type WebhookDelivery,
  type WebhookEndpoint,
} from '@millrace/contract';
import { runSchemathesis } from '../testing/schemathesis.ts';
import { seedVideo } from '../testing/seed-video.ts';
import { createTenant, type Tenant } from '../testing/test-api.ts';
import { createUploadBench, start, type UploadBench } from '../testing/upload-bench.ts';

let bench: UploadBench;
beforeAll(async () => {
  bench = await createUploadBench();
});
afterAll(() => bench.close());

interface Seeded {
  me: Tenant;
  domain: string;
  parameters: Record<string, string>;
  operations: Record<string, Record<string, string>>;
}

let seeds = 0;
/** A project with one of everything, and another one for each operation that takes something away. */
async function seed(): Promise<Seeded> {
  const { api } = bench;
  const me = await createTenant(api);
  const domain = `outside${++seeds}.example.com`;
  const { id: domainId } = await api.operator.addDomain({
    projectId: me.projectId,
    hostname: domain,
    verified: true,
  });
  const other = await api.operator.addDomain({ projectId: me.projectId, hostname: `other.${domain}` });
  const key = (): Promise<{ id: string }> =>
    api.operator.createApiKey({ projectId: me.projectId, name: 'K', scope: 'full' });
  const [openUpload, doomedUpload] = [(await start(bench, me)).body.id, (await start(bench, me)).body.id];
  const endpoint = async (): Promise<string> => {
    const body = { url: 'https://93.184.216.34/hooks', events: ['video.ready'] };
    const path = `/v1/projects/${me.projectId}/webhook-endpoints`;
    return (await api.ask<WebhookEndpoint>(`POST ${path}`, { bearer: me.full, body })).body.id;
  };
  const [endpointId, doomedEndpoint] = [await endpoint(), await endpoint()];
  const { body: delivery } = await api.ask<WebhookDelivery>(
    `POST /v1/projects/${me.projectId}/webhook-endpoints/${endpointId}/test`,
    { bearer: me.full },
  );
  const empty = await api.operator.createProject({ accountId: me.accountId, name: 'Empty' });
  return {
    ...{ me, domain },
    parameters: {
      ...{ projectId: me.projectId, videoId: await seedVideo(api.store, me), uploadId: openUpload, domainId },
      ...{
        keyId: (await key()).id,
        endpointId,
        deliveryId: delivery.id,
        code: 'not_found',
        provider: 'paytabs',
      },
    },
    operations: {
      deleteVideo: { videoId: await seedVideo(api.store, me) },
      cancelUpload: { uploadId: doomedUpload },
      removeDomain: { domainId: other.id },
      revokeApiKey: { keyId: (await key()).id },
      deleteWebhookEndpoint: { endpointId: doomedEndpoint },
      deleteProject: { projectId: empty.id },
    },
  };
}

const customers = Object.entries(routes as Record<string, RouteDefinition>).filter(
  ([, route]) => !isInternal(route),
);
const nameOf = (route: RouteDefinition): string => `${route.method.toUpperCase()} ${route.path}`;

/** What no made-up request can have accepted, and why. */
const never: Record<string, string> = {
  completeUpload: 'the parts must have been sent',
  createUploadToken: 'the domain must be one that is verified',
  createPlaybackToken: 'the domain must be one that is verified',
  putCaptions: 'a made-up body is no file of captions',
  deleteCaptions: 'there are none of a made-up language',
  addDomain: 'made-up names are seldom names of hosts',
  createWebhookEndpoint: 'made-up addresses are seldom public hosts',
  signOut: 'it would end the session that all others need; without one it is tried below',
  startSignIn: 'no provider is configured',
  finishSignIn: 'no provider is configured',
  startPhoneVerification: 'no provider of text messages is configured',
  verifyPhone: 'the code must have come by text message',
  checkout: 'paid plans are not on sale',
  billingCallback: 'the provider signs',
  getDemoPlayback: 'no demo is configured',
  getOpenApi: 'it is the document itself, which is read and not tried',
  createPreviewToken: 'the dashboard is configured in other tests',
};

describe('an outsider who knows the OpenAPI document alone', () => {
  it('with a session finds every answer as declared, and every operation at work', async () => {
    const { me, parameters, operations } = await seed();
    const headers = [`Cookie: svc_session=${me.cookie}`];
    // Its check of credentials keeps the cookie and adds an `Authorization` of no known kind, which is no credential.
    const report = await runSchemathesis({
      ...{ url: bench.api.url, headers, parameters, operations },
      ignoredAuth: false,
      without: ['signOut'],
    });
    expect([report.failures, report.output]).toEqual([[], expect.any(String)]);
    expect(report.untested).toBe(0);
    const open = customers.filter(([, { auth }]) => auth.length === 0 || auth.includes('session'));
    const silent = open.filter(
      ([id, route]) => !report.accepted.has(nameOf(route)) && never[id] === undefined,
    );
    expect(silent.map(([id]) => id)).toEqual([]);
  }, 300_000);

  it.each<[string, (seeded: Seeded) => string[]]>([
    ['a full key', ({ me }) => [`Authorization: Bearer ${me.full}`]],
    ['a playback-only key', ({ me }) => [`Authorization: Bearer ${me.playback}`]],
    ['no credential', () => []],
  ])(
    'with %s finds every answer as declared',
    async (_what, headersOf) => {
      const seeded = await seed();
      const { parameters, operations } = seeded;
      const report = await runSchemathesis({
        url: bench.api.url,
        headers: headersOf(seeded),
        parameters,
        operations,
      });
      expect([report.failures, report.output]).toEqual([[], expect.any(String)]);
      expect(report.untested).toBe(0);
    },
    300_000,
  );
});
