import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { probePort } from '@millrace/platform';
import { type Customer, signUp } from '../demo/customer.ts';
import { untilReady } from '../demo/demo.ts';
import { startStack, type StartedStack } from '../demo/stack.ts';
import { uploadFile } from '../demo/upload.ts';
import { cdnHost, openTheatre, type Theatre } from './theatre.ts';

jest.setTimeout(180_000);
const never = new AbortController().signal;
const run = promisify(execFile);
const seconds = 40;

/** Once through everything that is real: upload, encode, embed, renew, hold, delete. */
describe('the service and a browser', () => {
  let folder: string;
  let stack: StartedStack;
  let customer: Customer;
  let videoId: string;
  let cdnUrl: string;
  let theatre: Theatre;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-browser-'));
    const clip = join(folder, 'clip.mp4');
    await run('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', `testsrc2=s=640x360:r=15:d=${seconds}`],
      ...['-f', 'lavfi', '-i', `sine=frequency=330:duration=${seconds}`],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', clip],
    ]);
    // The CDN's own address is not that of its public name, so its port is chosen here.
    const port = await probePort('127.0.0.1');
    const env = { CDN_URL: `https://${cdnHost}`, CDN_PORT: String(port) };
    stack = await startStack({ dataDir: join(folder, 'data'), env, signal: never });
    customer = await signUp(stack, 'free');
    const uploaded = await uploadFile(customer, clip);
    videoId = (await untilReady(customer, uploaded.video.id)).id;
    cdnUrl = `http://127.0.0.1:${port}`;
    theatre = await openTheatre(cdnUrl);
  });
  afterAll(async () => {
    await theatre.close();
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const newToken = () => {
    const { client, projectId, domain } = customer;
    return client.createPlaybackToken({ projectId, videoId, body: { domain } });
  };

  it('play on the customer’s domain until the team holds the video [SVC-001, CDN-310, VID-107]', async () => {
    const { embedUrl } = await newToken();
    const show = await theatre.show(embedUrl, { host: customer.domain });
    await show.play();
    await show.playsOn(1);
    expect(await show.ask('document.querySelector(".logo").alt')).toBe('Millrace');
    await stack.millrace('video', 'hold', videoId, '--reason', 'to see it stop');
    await show.says(/This video is on hold/, 60_000);
    await stack.millrace('video', 'lift', videoId);
    await show.click('Try again');
    await show.playsOn(1);
    await theatre.clear();
  });

  it('keep a token that was given for a domain when that is removed [DOM-105]', async () => {
    const { client, projectId, domain } = customer;
    const { token } = await newToken();
    const play = async (): Promise<number> => {
      const headers = { origin: `https://${domain}` };
      return (await fetch(`${cdnUrl}/v/${videoId}/master.m3u8?token=${token}`, { headers })).status;
    };
    expect(await play()).toBe(200);
    const { data } = await client.listDomains({ projectId });
    for (const { id } of data) await client.removeDomain({ projectId, domainId: id });
    await expect(newToken()).rejects.toMatchObject({ code: 'domain_not_verified' });
    expect(await play()).toBe(200);
    await stack.millrace('domain', 'add', '--project', projectId, '--hostname', domain, '--verified');
  });

  it('say in words that a video was deleted [VID-111, CDN-335]', async () => {
    const { embedUrl } = await newToken();
    const { client, projectId, domain } = customer;
    await client.deleteVideo({ projectId, videoId });
    const show = await theatre.show(embedUrl, { host: domain });
    await show.says(/has been deleted/, 15_000);
  });
});
