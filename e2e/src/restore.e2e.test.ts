import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseKeySet } from '@millrace/domain';
import { startPostgres } from '@millrace/embedded/postgres';
import { createMetrics, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { probeLoop } from '../../services/reconciler/src/probe/probe.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { finishUpload, startUpload, uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const patienceMs = 120_000;

interface RecordState {
  restoredAt: string | null;
  sweepsOff: boolean;
  holdsWanted: boolean;
}

/** The drill of docs/runbooks/restore-drill.md, with a copy of PostgreSQL's folder as the backup. */
describe('a database that is restored from an older backup', () => {
  let folder: string;
  let dataDir: string;
  let stack: StartedStack;
  let customer: Customer;
  /** Ready and held when the backup is taken; held after it; uploaded after it; begun before it and completed after. */
  let [heldBefore, heldSince, uploadedSince, completedSince] = ['', '', '', ''];
  let completedUpload = '';
  let objectsBefore: string[] = [];

  const start = (): Promise<StartedStack> =>
    startStack({ dataDir, env: { ENCODER_PRESET: 'ultrafast' }, signal: new AbortController().signal });
  const again = async (between: () => Promise<void>): Promise<void> => {
    await stack.stop();
    await between();
    stack = await start();
  };
  /** Owners stay as they are: PostgreSQL takes no folder of another. */
  const copy = (from: string, to: string): Promise<unknown> =>
    promisify(execFile)('cp', ['-a', join(folder, from), join(folder, to)]);
  const upload = async (): Promise<string> => {
    const { video } = await uploadFile(customer, film);
    await untilReady(customer, video.id);
    return video.id;
  };
  const hold = (videoId: string): Promise<unknown> =>
    stack.millrace('video', 'hold', videoId, '--reason', 'drill', '--legal');
  const objects = async (): Promise<string[]> =>
    (await readdir(join(dataDir, 'objects'), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  /** As if the backup were older: what was an open upload then is overdue in the record that comes back. */
  const age = async (): Promise<void> => {
    const postgres = await startPostgres({ dataDir, logger: silentLogger });
    const db = createDatabase({ connectionString: postgres.connectionString, logger: silentLogger });
    try {
      const overdue = `update uploads set expires_at = now() - interval '1 hour' where video_id = $1 and state = 'open'`;
      expect((await db.query(overdue, [completedSince])).rowCount).toBe(1);
    } finally {
      await db.close();
      await postgres.stop();
    }
  };
  /** When a loop last did its work, in Unix seconds; 0 while it has not. */
  const lastRun = async (loop: string): Promise<number> => {
    const answer = await fetch(`${stack.ops['reconciler'] ?? ''}/metrics`);
    const series = `millrace_loop_last_success_timestamp_seconds{loop="${loop}"`;
    const line = (await answer.text()).split('\n').find((each) => each.startsWith(series)) ?? '0';
    return Number(line.split(' ').at(-1));
  };
  /** Until a run that began after this call has ended: the one that is under way may have looked before. */
  const untilRun = async (loop: string): Promise<void> => {
    for (const nth of ['the run under way', 'a whole run']) {
      const before = await lastRun(loop);
      const isOver = async (): Promise<boolean> => (await lastRun(loop)) > before;
      await waitFor(isOver, { timeoutMs: patienceMs, what: `${nth} of ${loop}` });
    }
  };
  const recordState = async (): Promise<RecordState> =>
    (await stack.millrace('record', 'show')) as RecordState;
  const statusOf = async (videoId: string): Promise<string> =>
    (await customer.client.getVideo({ projectId: customer.projectId, videoId })).status;
  const playlistOf = async (videoId: string): Promise<string> => {
    const { client, projectId, domain } = customer;
    const { playlistUrl = '' } = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
    return (await createPlayer(`https://${domain}`).get(playlistUrl)).toString('utf8');
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-restore-'));
    dataDir = join(folder, 'data');
    stack = await start();
    customer = await signUp(stack, 'pro');
    [heldBefore, heldSince] = await Promise.all([upload(), upload()]);
    await hold(heldBefore);
    const begun = await startUpload(customer, film);
    [completedSince, completedUpload] = [begun.video.id, begun.id];

    await again(() => copy('data/postgres', 'backup').then(() => undefined));
    uploadedSince = await upload();
    await finishUpload(customer, film, begun);
    await untilReady(customer, completedSince);
    await hold(heldSince);
    const copies = async (): Promise<number> =>
      (await objects()).filter((path) => path.includes('/record/holds/')).length;
    await waitFor(async () => (await copies()) === 2, {
      timeoutMs: patienceMs,
      what: 'copies of both holds',
    });
    objectsBefore = (await objects()).filter((path) => path.includes(`/videos/`));

    await again(async () => {
      await rm(join(dataDir, 'postgres'), { recursive: true });
      await copy('backup', 'data/postgres');
      await age();
    });
  }, 3 * patienceMs);
  afterAll(async () => {
    await (stack as StartedStack | undefined)?.stop();
    await rm(folder, { recursive: true, force: true });
  }, patienceMs);

  it(
    'is noticed, and loses no hold',
    async () => {
      const state = await waitFor(
        async () => {
          const seen = await recordState();
          return seen.sweepsOff && !seen.holdsWanted ? seen : null;
        },
        { timeoutMs: patienceMs, what: 'the restored record to be noticed' },
      );
      expect(state.restoredAt).not.toBeNull();
      await expect(statusOf(uploadedSince)).rejects.toMatchObject({ code: 'not_found' });
      for (const videoId of [heldBefore, heldSince]) {
        expect(await statusOf(videoId)).toBe('held');
        await expect(playlistOf(videoId)).rejects.toThrow();
      }
    },
    patienceMs,
  );

  it(
    'goes on: what is lifted plays, what is uploaded is ready, and nothing is deleted until sweeps are allowed',
    async () => {
      await stack.millrace('video', 'lift', heldSince);
      await waitFor(async () => (await playlistOf(heldSince)).startsWith('#EXTM3U'), {
        timeoutMs: patienceMs,
      });
      const videoId = await upload();
      const { client, projectId } = customer;
      await client.deleteVideo({ projectId, videoId });
      const left = async (): Promise<string[]> => (await objects()).filter((path) => path.includes(videoId));
      await waitFor(() => lastRun('expire-uploads'), {
        timeoutMs: patienceMs,
        what: 'overdue uploads to be looked for',
      });
      await untilRun('purge-objects');
      expect(await objects()).toEqual(expect.arrayContaining(objectsBefore));
      expect(await left()).not.toEqual([]);

      expect(await stack.millrace('record', 'sweep')).toMatchObject({ sweepsOff: false });
      await Promise.all([
        untilRun('expire-uploads'),
        waitFor(async () => (await left()).length === 0, {
          timeoutMs: patienceMs,
          what: 'the objects of a deleted video to go',
        }),
      ]);
      // What was open in the backup and completed since waits for its owner, though it was overdue.
      expect(await statusOf(completedSince)).toBe('uploading');
      expect(await objects()).toEqual(expect.arrayContaining(objectsBefore));
      const etag = createHash('md5')
        .update(await readFile(film))
        .digest('hex');
      const body = { parts: [{ partNumber: 1, etag }] };
      await client.completeUpload({ projectId, uploadId: completedUpload, body });
      await untilReady(customer, completedSince);
    },
    patienceMs,
  );

  it('is what the synthetic viewer finds, with tokens of its own on the real CDN', async () => {
    const secrets = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8')) as {
      playbackKeys: string;
    };
    const probe = {
      canaries: { playing: heldSince, held: heldBefore },
      ...{ domain: customer.domain, cdnUrl: stack.cdn, keys: parseKeySet(secrets.playbackKeys) },
    };
    const metrics = createMetrics({ service: 'reconciler' });
    const deps = { clock: systemClock, logger: silentLogger, metrics };
    await probeLoop(probe, deps).run(new AbortController().signal);
    const found = (await metrics.render())
      .split('\n')
      .filter((line) => line.startsWith('millrace_probe_ok{'));
    expect(found.map((line) => line.split(' ').at(-1))).toEqual(['1', '1']);
  });
});
