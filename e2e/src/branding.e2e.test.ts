import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Client, createClient } from '@millrace/client';
import { waitFor } from '@millrace/testing';
import { z } from 'zod';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { uploadFile } from './demo/upload.ts';

const dashboard = 'app.example.com';

describe('what the API is told', () => {
  let folder: string;
  let stack: StartedStack;
  let customer: Customer;
  let session: Client;
  let videoId: string;
  let embedUrl: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-branding-test-'));
    const clip = join(folder, 'clip.mp4');
    await promisify(execFile)('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=15:d=2'],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', clip],
    ]);
    stack = await startStack({
      dataDir: join(folder, 'data'),
      env: { DASHBOARD_HOSTS: dashboard },
      signal: new AbortController().signal,
    });
    customer = await signUp(stack, 'agency');
    const { cookie } = z
      .object({ cookie: z.string() })
      .parse(await stack.millrace('session', 'create', '--user', customer.userId));
    session = createClient({ baseUrl: stack.api, headers: { cookie: `svc_session=${cookie}` } });
    const { client, projectId, domain } = customer;
    ({ id: videoId } = await untilReady(customer, (await uploadFile(customer, clip)).video.id));
    ({ embedUrl } = await client.createPlaybackToken({ projectId, videoId, body: { domain } }));
  });
  afterAll(async () => {
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const page = async (): Promise<string> =>
    (await fetch(embedUrl, { headers: { accept: 'text/html' } })).text();
  const shows = (text: string) =>
    waitFor(async () => (await page()).includes(text), { what: `the embed page to show ${text}` });
  const showsNo = (text: string) =>
    waitFor(async () => !(await page()).includes(text), { what: `the embed page to show no ${text}` });

  it('shows on the embed page that the CDN already knows: a title, branding, and what the plan allows [EMB-212, EMB-213]', async () => {
    const { projectId, accountId, client } = customer;
    const logoUrl = 'https://logo.example.com/a.svg';
    expect(await page()).not.toContain(logoUrl);
    await client.updateVideo({ projectId, videoId, body: { title: 'Another title' } });
    await shows('<title>Another title</title>');
    await session.updateProject({ projectId, body: { branding: { primaryColor: '#123456', logoUrl } } });
    await shows(logoUrl);
    expect(await page()).toContain('#123456');
    await stack.millrace('account', 'plan', accountId, 'starter');
    await showsNo(logoUrl);
    expect(await page()).not.toContain('#123456');
    await stack.millrace('account', 'plan', accountId, 'pro');
    await shows(logoUrl);
  });

  it('makes previews that play on the dashboard alone [PVT-203]', async () => {
    const { projectId, domain } = customer;
    const preview = await session.createPreviewToken({ projectId, videoId });
    const status = async (host: string): Promise<number> => {
      const url = `${stack.cdn}/v/${videoId}/master.m3u8?token=${preview.token}`;
      return (await fetch(url, { headers: { origin: `https://${host}` } })).status;
    };
    expect([await status(dashboard), await status(domain)]).toEqual([200, 403]);
    const framed = await fetch(`${preview.embedUrl}?token=${preview.token}`, {
      headers: { accept: 'text/html', referer: `https://${dashboard}/` },
    });
    expect(framed.status).toBe(200);
    expect(framed.headers.get('content-security-policy')).toContain(`frame-ancestors https://${dashboard}`);
  });
});
