import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Resolver } from 'node:dns/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Client, createClient } from '@millrace/client';
import { waitFor } from '@millrace/testing';
import { type OwnService, startOwnService } from './testing/own-service.ts';

/** Each command is a process of its own. */
const slowly = 180_000;
const services = ['api', 'cdn', 'encoder', 'reconciler', 'webhooks'];

/** An account made by the command line, and who may call for it. */
interface Customer {
  accountId: string;
  projectId: string;
  /** With a full-scope key. */
  client: Client;
  /** Signed in. */
  session: Client;
}
let customers = 0;
async function signUp(service: OwnService): Promise<Customer> {
  const email = `owner${++customers}@example.com`;
  const { account, user } = (await service.millrace(
    ...['account', 'create', '--name', 'Acme', '--email', email, '--plan', 'pro'],
  )) as { account: { id: string }; user: { id: string } };
  const { cookie } = await service.millrace('session', 'create', '--user', user.id);
  const baseUrl = service.ready.api;
  const session = createClient({ baseUrl, headers: { cookie: `svc_session=${String(cookie)}` } });
  const { id: projectId } = await session.createProject({ body: { name: 'Site' } });
  const { value } = await session.createApiKey({ projectId, body: { name: 'Server' } });
  const client = createClient({ baseUrl, bearer: value });
  return { accountId: account.id, projectId, client, session };
}

const refused = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'accepted',
    (error: unknown) => (error as { code: string }).code,
  );
const portOf = (url: string): number => Number(new URL(url).port);
/** Every address of a ready file. */
const addresses = ({ ready: { api, cdn, admin, ops } }: OwnService): string[] => [
  ...[api, cdn, admin],
  ...Object.values(ops),
];

/** The addresses, in the kernel's spelling, on which these ports are listened to. */
async function listenedOn(ports: readonly number[]): Promise<string[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8')));
  const sockets = tables.flatMap((table) => table.trim().split('\n').slice(1));
  return sockets.flatMap((line) => {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    return state === '0A' && ports.includes(Number.parseInt(port, 16)) ? [address] : [];
  });
}
const loopback = '0100007F';

describe('npm start', () => {
  let service: OwnService;
  let customer: Customer;
  beforeAll(async () => {
    service = await startOwnService([]);
    customer = await signUp(service);
  }, slowly);
  afterAll(() => service.remove());

  it('takes free loopback ports [RUN-002]', async () => {
    const ports = addresses(service).map(portOf);
    expect(new Set(ports).size).toBe(3 + services.length);
    expect(addresses(service).map((url) => new URL(url).hostname)).toEqual(ports.map(() => '127.0.0.1'));
    expect(await listenedOn(ports)).toEqual(ports.map(() => loopback));
  });

  it('says where each part is when all of it is ready [RUN-003]', async () => {
    expect(service.readiness).toEqual(services.map(() => 200));
    const { api, cdn, admin } = service.ready;
    const health = await fetch(`${api}/health`);
    expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }]);
    const video = await fetch(`${cdn}/v/vid_x/master.m3u8`);
    expect([video.status, video.headers.get('x-svc-error')]).toEqual([403, 'token_missing']);
    expect((await fetch(`${admin}/admin/audit`)).status).toBe(401);
  });

  it('has health, readiness and metrics of each service [RUN-004]', async () => {
    expect(Object.keys(service.ready.ops).sort()).toEqual(services);
    for (const [name, url] of Object.entries(service.ready.ops)) {
      for (const path of ['/health', '/ready', '/metrics']) {
        const { status } = await fetch(url + path);
        expect([name, path, status]).toEqual([name, path, 200]);
      }
      expect(await (await fetch(`${url}/metrics`)).text()).toContain(`service="${name}"`);
    }
  });

  it('sends nothing to loopback hosts, and no codes [RUN-008, RUN-009]', async () => {
    const { client, session, projectId } = customer;
    for (const url of ['http://127.0.0.1:8443/hook', 'https://127.0.0.1:8443/hook', 'https://localhost/']) {
      const body = { url, events: ['video.ready' as const] };
      expect(await refused(client.createWebhookEndpoint({ projectId, body }))).toBe('invalid_request');
    }
    expect(await refused(session.startPhoneVerification({ body: { phone: '0501234567' } }))).toBe(
      'sms_not_configured',
    );
  });

  it(
    'is one process beside its PostgreSQL until SIGTERM, and leaves nothing behind [RUN-001]',
    async () => {
      const others = (await service.processes()).filter(
        (command) => !command.includes('embedded/src/main.ts'),
      );
      expect(others.length).toBeGreaterThan(0);
      expect(others.filter((command) => !command.includes('postgres'))).toEqual([]);
      expect(await service.end('SIGTERM')).toBe(0);
      expect(await service.processes()).toEqual([]);
      expect(await listenedOn(addresses(service).map(portOf))).toEqual([]);
      expect(service.isAnnounced()).toBe(false);
      // What was made while it ran is there, and can be changed, without it.
      expect(await service.millrace('account', 'plan', customer.accountId, 'starter')).toMatchObject({
        planId: 'starter',
      });
    },
    slowly,
  );
});

describe('npm start -- --dev', () => {
  let service: OwnService;
  let customer: Customer;
  let apiPort: number;
  let receiver: Server;
  let events: { type: string; data: { reason?: string; video: { id: string } } }[];
  beforeAll(async () => {
    receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.once('end', () => {
        events.push(JSON.parse(Buffer.concat(chunks).toString()) as (typeof events)[number]);
        response.writeHead(204).end();
      });
    });
    events = [];
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const free = createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    apiPort = (free.address() as AddressInfo).port;
    await new Promise((resolve) => free.close(resolve));
    service = await startOwnService(['--dev'], { API_PORT: String(apiPort) });
    customer = await signUp(service);
  }, slowly);
  afterAll(async () => {
    await service.remove();
    await new Promise((resolve) => receiver.close(resolve));
  });

  const admin = (): Client =>
    createClient({ baseUrl: service.ready.admin, bearer: service.ready.adminToken ?? '' });
  const receiverUrl = (): string => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const subscribe = (): Promise<{ id: string }> =>
    customer.client.createWebhookEndpoint({
      projectId: customer.projectId,
      body: { url: receiverUrl(), events: ['video.held', 'video.ready', 'video.removed'] },
    });
  const startUpload = async (): Promise<string> => {
    const body = { sizeBytes: 1_000, contentType: 'video/mp4' } as const;
    return (await customer.client.startUpload({ projectId: customer.projectId, body })).video.id;
  };
  /** What people did to it: whether the CDN confirms a hold before it is lifted is a matter of chance. */
  const auditOf = async (videoId: string): Promise<string[]> => {
    const { data } = await admin().listAudit({ query: { subject: videoId } });
    return data
      .filter(({ actor }) => actor !== 'reconciler')
      .map(({ actor, action, details }) => `${actor} ${action} ${JSON.stringify(details)}`)
      .reverse();
  };

  it('takes the ports that are configured, and gives the admin token [RUN-002, RUN-005]', async () => {
    expect(portOf(service.ready.api)).toBe(apiPort);
    expect((await admin().listReports({})).data).toEqual([]);
  });

  it(
    'answers the look-ups of domain verification [RUN-007]',
    async () => {
      const { client, projectId } = customer;
      const { id: domainId, verification } = await client.addDomain({
        ...{ projectId, body: { hostname: 'www.example.com' } },
      });
      const verify = async (): Promise<string> => (await client.verifyDomain({ projectId, domainId })).status;
      expect(await verify()).toBe('pending');
      await service.millrace('dev', 'txt', verification.name, verification.value);
      expect(await verify()).toBe('verified');
      const resolver = new Resolver();
      resolver.setServers([service.ready.dns ?? '']);
      expect(await resolver.resolveTxt(verification.name)).toEqual([[verification.value]]);
      await service.millrace('dev', 'txt', verification.name, verification.value, '--delete');
      expect((await client.verifyDomain({ projectId, domainId })).lastCheck?.found).toEqual([]);
    },
    slowly,
  );

  it('sends webhooks to this machine, over http too [RUN-008]', async () => {
    const { client, projectId } = customer;
    const { id: endpointId } = await subscribe();
    await client.testWebhookEndpoint({ projectId, endpointId });
    await waitFor(() => events.some(({ type }) => type === 'webhook.test'), { what: 'the webhook' });
    await client.deleteWebhookEndpoint({ projectId, endpointId });
  });

  it(
    'goes on when its database restarts while all is idle',
    async () => {
      const { client, projectId } = customer;
      const { id: endpointId } = await subscribe();
      events = [];
      await service.crashDatabase();
      const isWell = async (): Promise<boolean> => {
        const urls = [service.ready.api, ...Object.values(service.ready.ops)];
        const answers = await Promise.all(urls.map((url) => fetch(`${url}/health`)));
        return answers.every(({ status }) => status === 200);
      };
      await waitFor(isWell, { timeoutMs: 60_000, what: 'every service to be well' });
      expect((await client.getProject({ projectId })).id).toBe(projectId);
      await client.testWebhookEndpoint({ projectId, endpointId });
      await waitFor(() => events.length === 1, { timeoutMs: 60_000, what: 'the webhook' });
      await client.deleteWebhookEndpoint({ projectId, endpointId });
    },
    slowly,
  );

  it('answers the code that it would send to a phone [RUN-009]', async () => {
    const { challengeId, testCode = '' } = await customer.session.startPhoneVerification({
      body: { phone: '0501234567' },
    });
    const account = await customer.session.verifyPhone({ body: { challengeId, code: testCode } });
    expect(account.phoneVerified).toBe(true);
  });

  it(
    'is worked on by the command line: an account is banned until that is lifted [CLI-006, CLI-017]',
    async () => {
      const { client, session, projectId, accountId } = customer;
      expect(await service.millrace('account', 'ban', accountId)).toMatchObject({ id: accountId });
      expect(await refused(client.getProject({ projectId }))).toBe('account_banned');
      expect(await refused(session.getMe({}))).toBe('account_banned');
      expect(await service.millrace('account', 'ban', accountId, '--lift')).toMatchObject({ id: accountId });
      expect((await client.getProject({ projectId })).id).toBe(projectId);
      const { out, err, code } = await service.command('account', 'ban', 'acc_unknown');
      expect([out, err.startsWith('not_found'), code]).toEqual(['', true, 1]);
    },
    slowly,
  );

  it(
    'holds, lifts and removes videos by the command line as the admin routes do [CLI-012]',
    async () => {
      const { id: endpointId } = await subscribe();
      events = [];
      /** What is equal of two videos that are treated the same. */
      const same = (video: object): object => ({ ...video, id: '', createdAt: '', updatedAt: '' });
      const actOn = async (legal: boolean): Promise<string[]> => {
        const [byCommand, byRoute] = [await startUpload(), await startUpload()];
        const flags = ['--reason', 'Review', ...(legal ? ['--legal'] : [])];
        const { millrace } = service;
        const held = await admin().holdVideo({ videoId: byRoute, body: { reason: 'Review', legal } });
        expect(same(await millrace('video', 'hold', byCommand, ...flags))).toEqual(same(held));
        const lifted = await admin().liftVideo({ videoId: byRoute });
        expect(same(await millrace('video', 'lift', byCommand))).toEqual(same(lifted));
        const query = { reason: 'Review', legal: legal ? 'true' : 'false' } as const;
        await admin().removeVideo({ videoId: byRoute, query });
        expect(await millrace('video', 'remove', byCommand, ...flags)).toEqual({ removed: byCommand });
        const { client, projectId } = customer;
        for (const videoId of [byCommand, byRoute])
          expect(await refused(client.getVideo({ projectId, videoId }))).toBe('not_found');
        const asOperator = (await auditOf(byRoute)).map((line) => line.replace(/^admin/, 'operator'));
        expect(await auditOf(byCommand)).toEqual(asOperator);
        expect(asOperator).toHaveLength(3);
        return [byCommand, byRoute];
      };
      const [plain, legal] = [await actOn(false), await actOn(true)];
      const told = (ids: readonly string[]): string[] =>
        events
          .filter(({ data }) => ids.includes(data.video.id))
          .map(({ type, data }) => `${type} ${data.reason ?? ''}`);
      await waitFor(() => told(plain).length === 2, { what: 'both events' });
      expect(told(plain)).toEqual(['video.removed Review', 'video.removed Review']);
      expect(told(legal)).toEqual([]);
      await customer.client.deleteWebhookEndpoint({ projectId: customer.projectId, endpointId });
    },
    slowly,
  );

  it(
    'ends by SIGINT too, and the command line goes on without it [RUN-001, CLI-017]',
    async () => {
      expect(await service.end('SIGINT')).toBe(0);
      expect(await service.processes()).toEqual([]);
      expect(await service.millrace('usage', 'show', customer.accountId)).toMatchObject({
        plan: { id: 'pro' },
        usage: { verifiedDomains: 1 },
      });
    },
    slowly,
  );
});
