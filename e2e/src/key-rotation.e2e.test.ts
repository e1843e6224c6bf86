import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createClient } from '@millrace/client';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { type Receiver, startReceiver } from './demo/receiver.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';
import { register } from './demo/webhooks.ts';
import { startTestStack, type TestStack } from './testing/test-stack.ts';

const page = new URL('../../docs/key-rotation.md', import.meta.url);
const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
/** What the page rotates by three roll-outs; the rest is shared with providers, or never dropped. */
const sets = [
  ...['PLAYBACK_KEYS', 'UPLOAD_TOKEN_KEYS', 'CURSOR_KEYS', 'SIGN_IN_KEYS', 'WEBHOOK_SECRET_KEYS'],
  ...['INTERNAL_SECRET', 'ADMIN_TOKEN'],
];
const patienceMs = 60_000;

/** What was handed out, or written down, with the keys of its time. */
interface Issued {
  playlistUrl: string;
  uploadToken: string;
  cursor: string;
}

/** The three roll-outs, each as it changes the text of a set. */
const rollOuts = {
  add: (set: string, name: string) => `${set},${newOf(name)}`,
  move: (set: string) => set.split(',').reverse().join(','),
  drop: (set: string) => set.split(',')[0] ?? '',
};
const newOf = (name: string): string => {
  const secret = randomBytes(32).toString('base64url');
  return name.endsWith('_KEYS') ? `new:${secret}` : secret;
};

describeWith(missingForKafka() ?? missingForS3(), 'the rotation of every key by three roll-outs', () => {
  let stack: TestStack;
  let customer: Customer;
  let receiver: Receiver;
  let endpointId: string;
  /** Which services read a set, as the page says. */
  let readers: Map<string, string[]>;
  let adminTokens: string[];

  beforeAll(async () => {
    readers = await readersOf(page);
    stack = await startTestStack();
    customer = await signUp(stack.attached, 'pro');
    receiver = await startReceiver();
    endpointId = (await register(customer, receiver)).endpoint.id;
    adminTokens = [stack.ready().adminToken];
  }, 20 * 60_000);
  afterAll(async () => {
    await (stack as TestStack | undefined)?.stop();
    await (receiver as Receiver | undefined)?.stop();
  }, patienceMs);

  /** A video that no process of the CDN has asked for yet. */
  const makeVideo = async (): Promise<string> => {
    const { video } = await uploadFile(customer, film);
    await untilReady(customer, video.id);
    await hear('video.ready');
    return video.id;
  };
  const hear = async (type: string): Promise<void> => {
    const { event } = await waitFor(() => receiver.next(), { timeoutMs: patienceMs, what: type });
    expect(event.type).toBe(type);
  };
  const issue = async (videoId: string): Promise<Issued> => {
    const { client, projectId, domain } = customer;
    const { playlistUrl = '' } = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
    const { token } = await client.createUploadToken({ projectId, body: { domain } });
    const { nextCursor } = await client.listVideos({ projectId, query: { limit: 1 } });
    return { playlistUrl, uploadToken: token, cursor: nextCursor ?? '' };
  };
  const play = async ({ playlistUrl }: Pick<Issued, 'playlistUrl'>): Promise<string> =>
    (await createPlayer(`https://${customer.domain}`).get(playlistUrl)).toString('utf8', 0, 7);
  /** As the browser does that was given the token. */
  const startUpload = async ({ uploadToken }: Pick<Issued, 'uploadToken'>): Promise<string> => {
    const { projectId, domain } = customer;
    const browser = createClient({
      ...{ baseUrl: stack.attached.api, bearer: uploadToken },
      fetch: (url, init) => {
        const headers = new Headers(init?.headers);
        headers.set('origin', `https://${domain}`);
        return fetch(url, { ...init, headers });
      },
    });
    const body = { fileName: 'a.mp4', sizeBytes: 1_000, contentType: 'video/mp4' as const };
    return (await browser.startUpload({ projectId, body })).id;
  };
  const list = async ({ cursor }: Pick<Issued, 'cursor'>): Promise<number> =>
    (
      await customer.client.listVideos({
        ...{ projectId: customer.projectId, query: { limit: 1, cursor } },
      })
    ).data.length;
  const askAsAdmin = async (token: string): Promise<number> =>
    (await fetch(`${stack.ready().admin}/admin/reports`, { headers: { authorization: `Bearer ${token}` } }))
      .status;

  /** All that the sets are for: with what was issued before, and anew. */
  async function works(issued: Issued, videoId: string): Promise<void> {
    expect(await play(issued)).toBe('#EXTM3U');
    expect(await list(issued)).toBe(1);
    for (const token of adminTokens) expect(await askAsAdmin(token)).toBe(200);
    const { client, projectId } = customer;
    await client.testWebhookEndpoint({ projectId, endpointId });
    await hear('webhook.test');
    const anew = await issue(videoId);
    expect(await play(anew)).toBe('#EXTM3U');
    expect(await list(anew)).toBe(1);
    await startUpload(anew);
  }

  async function rollOut(step: keyof typeof rollOuts, more: NodeJS.ProcessEnv = {}): Promise<Issued[]> {
    const fresh = new Map<string, string>();
    const changed = (name: string, set: string): string => {
      // All readers of a set get the same.
      if (!fresh.has(name)) fresh.set(name, rollOuts[step](set, name));
      return fresh.get(name) ?? '';
    };
    const videos = [await makeVideo(), await makeVideo()];
    const uploads: Issued[] = [];
    for (const service of new Set([...readers.values()].flat())) {
      const before = await issue(videos[0] ?? '');
      uploads.push(before);
      const names = sets.filter((name) => readers.get(name)?.includes(service));
      await stack.services.get(service)?.rollOut((env) => {
        const own = names.map((name): [string, string] => [name, changed(name, env[name] ?? '')]);
        return { ...env, ...more, ...Object.fromEntries(own) };
      }, AbortSignal.timeout(patienceMs));
      const tokens = fresh.get('ADMIN_TOKEN');
      if (tokens !== undefined) adminTokens = tokens.split(',');
      // The first video is known to the CDN until that is replaced; the second makes it ask the API.
      for (const videoId of videos) await works(before, videoId);
      await startUpload(before);
    }
    return uploads;
  }

  it('is of sets that the page names, with the services that read them', () => {
    expect(sets.filter((name) => !readers.has(name))).toEqual([]);
    const named = new Set([...readers.values()].flat());
    expect([...named].filter((service) => !stack.services.has(service))).toEqual([]);
  });

  it('refuses nothing while keys are added and moved, nor what was made since when the old ones are dropped', async () => {
    const [playing, held] = [await makeVideo(), await makeVideo()];
    await stack.attached.millrace('video', 'hold', held, '--reason', 'the held canary');
    const canaries = { PROBE_VIDEO_ID: playing, PROBE_HELD_VIDEO_ID: held, PROBE_DOMAIN: customer.domain };
    /** The synthetic viewer signs its own tokens. */
    const isProbed = async (): Promise<boolean> =>
      (await stack.metric('reconciler', 'millrace_probe_ok{canary="playing"')) === 1 &&
      (await stack.metric('reconciler', 'millrace_probe_ok{canary="held"')) === 1;
    const untilProbed = (): Promise<unknown> =>
      waitFor(isProbed, { timeoutMs: patienceMs, what: 'the synthetic viewer to be well' });

    const [oldest] = await rollOut('add', canaries);
    await untilProbed();
    await rollOut('move');
    await untilProbed();
    const since = await issue(playing);
    const oldSecrets = async (): Promise<boolean> => {
      const left = ['true', 'false'].map((readable) =>
        stack.metric('webhooks', `millrace_webhook_secrets_old_key{readable="${readable}"`),
      );
      return (await Promise.all(left)).every((count) => count === 0);
    };
    await waitFor(oldSecrets, { timeoutMs: 2 * patienceMs, what: 'the secrets to be sealed anew' });
    await rollOut('drop');
    await untilProbed();
    await works(since, playing);

    // What the page says to wait for was not waited for here.
    const old = oldest ?? since;
    await expect(play(old)).rejects.toThrow('token_invalid');
    await expect(startUpload(old)).rejects.toMatchObject({ status: 401 });
    await expect(list(old)).rejects.toMatchObject({ status: 400 });
    expect(await askAsAdmin(stack.ready().adminToken)).toBe(401);
  }, 600_000);
});

/** The page's table: each setting in its first column, and the services that read it. */
async function readersOf(address: URL): Promise<Map<string, string[]>> {
  const rows = (await readFile(address, 'utf8')).matchAll(/^\| `([A-Z_]+)` +\| ([a-z, ]+?) +\|/gm);
  return new Map(
    [...rows].map(([, name = '', services = '']): [string, string[]] => [name, services.split(', ')]),
  );
}
