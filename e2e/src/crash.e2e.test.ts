import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createClient } from '@millrace/client';
import { waitFor } from '@millrace/testing';
import { type Customer, signUp } from './demo/customer.ts';
import { see } from './demo/media.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { createPlayer, walkVideo } from './demo/walk.ts';
import { createChance, testSeed } from './testing/random.ts';

const seed = testSeed();
const rounds = Number(process.env['MILLRACE_CRASH_ROUNDS'] ?? 1);
/** A dead encoder's work is taken up again after this. */
const env = { ENCODER_LEASE_MS: '2000' };
const frames = 150;

/** Where in the life of a video the service is killed. */
const moments = ['upload started', 'part stored', 'completing', 'encoding', 'ready'] as const;

describe(`kill -9 at any moment (seed ${seed})`, () => {
  let folder: string;
  let dataDir: string;
  let clip: Buffer<ArrayBuffer>;
  let stack: StartedStack;
  let customer: Customer;
  const chance = createChance(seed);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-crash-'));
    dataDir = join(folder, 'data');
    const path = join(folder, 'clip.mp4');
    await promisify(execFile)('ffmpeg', [
      ...[
        '-v',
        'error',
        '-f',
        'lavfi',
        '-i',
        'testsrc2=s=1280x720:r=30:d=5',
        '-f',
        'lavfi',
        '-i',
        'sine=d=5',
      ],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac', path],
    ]);
    clip = Buffer.from(await readFile(path));
    stack = await start();
    customer = await signUp(stack, 'pro');
  });
  afterAll(async () => {
    await stack.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const start = (): Promise<StartedStack> =>
    startStack({ dataDir, env, signal: new AbortController().signal });

  /** Kills the service, main process or whole group, and starts it again on the same data. */
  async function crash(): Promise<void> {
    await stack.kill(chance.next() < 0.5);
    await stack.stop();
    stack = await start();
    const servers = (await processesOf('/postgres/cluster')).filter(({ command }) =>
      command.includes('\0-D\0'),
    );
    // A server process that was just forked has its postmaster's command line until it names itself.
    const pids = new Set(servers.map(({ pid }) => pid));
    expect(servers.filter(({ parent }) => !pids.has(parent))).toHaveLength(1);
  }

  interface Process {
    pid: string;
    parent: string;
    command: string;
  }

  /** Living processes that work on the data folder. */
  async function processesOf(what: string): Promise<Process[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const read = async (pid: string): Promise<Process> => {
      const [command = '', status = ''] = await Promise.all(
        ['cmdline', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      );
      return { pid, parent: /^PPid:\s+(\d+)$/m.exec(status)?.[1] ?? '', command };
    };
    const all = await Promise.all(pids.map(read));
    return all.filter(({ command }) => command.includes(dataDir) && command.includes(what));
  }

  const video = async (videoId: string) =>
    customer.client.getVideo({ projectId: customer.projectId, videoId });
  const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  const cases = Array.from({ length: rounds }, (_, round) =>
    moments.map((moment) => [moment, round + 1] as const),
  ).flat();
  it.each(cases)(
    'loses nothing acknowledged and ends the encode: killed when %s (round %i) [SVC-001, SVC-003]',
    async (moment) => {
      const { client, projectId, domain } = customer;
      const body = { fileName: 'clip.mp4', sizeBytes: clip.length, contentType: 'video/mp4' } as const;
      const upload = await client.startUpload({ projectId, body });
      const videoId = upload.video.id;
      if (moment === 'upload started') await crash();

      const open = await client.getUpload({ projectId, uploadId: upload.id });
      const put = await fetch(open.parts[0]?.url ?? '', { method: 'PUT', body: clip });
      expect(put.status).toBe(200);
      const etag = put.headers.get('etag') ?? '';
      if (moment === 'part stored') {
        await crash();
        const resumed = await client.getUpload({ projectId, uploadId: upload.id });
        expect(resumed.uploadedParts).toEqual([{ partNumber: 1, etag, sizeBytes: clip.length }]);
      }

      const complete = (): Promise<unknown> =>
        client.completeUpload({ projectId, uploadId: upload.id, body: { parts: [{ partNumber: 1, etag }] } });
      if (moment === 'completing') {
        const unanswered = complete().catch(() => undefined);
        await pause(chance.next() * 30);
        await crash();
        await unanswered;
        // The answer was lost: asking again succeeds, or says that the first call did.
        await complete().catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'upload_closed' });
        });
      } else {
        await complete();
      }

      if (moment === 'encoding') {
        await pause(chance.next() * 1_500);
        await crash();
        expect(['processing', 'ready']).toContain((await video(videoId)).status);
      }
      await waitFor(async () => (await video(videoId)).status === 'ready', {
        timeoutMs: 60_000,
        what: 'the encode',
      });
      if (moment === 'ready') {
        await crash();
        expect((await video(videoId)).status).toBe('ready');
      }

      const token = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
      const walk = await walkVideo(
        createPlayer(`https://${domain}`),
        token.playlistUrl ?? '',
        join(folder, videoId),
      );
      expect(walk.variants.map((variant) => variant.height).sort()).toEqual([360, 720]);
      for (const { path } of walk.variants) {
        const { times, complaints } = await see(path, 0);
        expect({ frames: times.length, complaints }).toEqual({ frames, complaints: '' });
      }
      expect(await processesOf('ffmpeg')).toEqual([]);
    },
  );

  it('keeps addresses and keys over a restart', async () => {
    const before = { api: stack.api, cdn: stack.cdn };
    await crash();
    expect({ api: stack.api, cdn: stack.cdn }).toEqual(before);
    const again = createClient({ baseUrl: stack.api });
    expect(await again.getHealth({})).toEqual({ status: 'ok' });
  });
});
