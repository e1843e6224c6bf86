import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '../../../packages/bus/src/memory/memory-bus.ts'; // TEMP
import { deliveryIndex, type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';
import { ObjectStoreError } from '@millrace/objects';
import { createMetrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import {
  createDatabase,
  createEncodeJob,
  type Database,
  moveVideo,
  reapExpiredLeases,
} from '@millrace/store';
import {
  createTestDatabase,
  createTestObjects,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
  type TestObjects,
  waitFor,
} from '@millrace/testing';
import { createEncoder, encoderConfig } from './index.ts';
import { type EncoderProcess } from './process/encoder-process.ts';
import { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';

const run = promisify(execFile);
let testDatabase: TestDatabase;
let db: Database;
let folder: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
  folder = await mkdtemp(path.join(tmpdir(), 'millrace-encoder-test-'));
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
  await rm(folder, { recursive: true });
});

let objects: TestObjects;
let bus: MemoryBus;
let account: SeededAccount;
let encoders: Service[];
let metrics: ReturnType<typeof createMetrics>;

beforeEach(async () => {
  objects = await createTestObjects();
  bus = createMemoryBus();
  account = await seedAccount(db);
  encoders = [];
  metrics = createMetrics({ service: 'encoder' });
});
afterEach(async () => {
  await Promise.all(encoders.map((encoder) => encoder.stop()));
  await bus.close();
  await objects.close();
  await db.query(`update encode_tasks set status = 'cancelled' where status in ('queued', 'processing')`);
});

async function startEncoder(env: Record<string, string> = {}, process?: EncoderProcess): Promise<Service> {
  const encoder = createEncoder({
    config: encoderConfig.parse({
      ENCODER_SLOTS: '2',
      ENCODER_THREADS: '2',
      ENCODER_LEASE_MS: '3000',
      ENCODER_IDLE_MS: '50',
      ENCODER_DRAIN_MS: '0',
      ENCODER_PRESET: 'ultrafast',
      ENCODER_SCRATCH_DIR: path.join(folder, 'scratch'),
      ...env,
    }),
    store: db,
    bus,
    objects: objects.objects,
    clock: systemClock,
    logger: silentLogger,
    metrics,
    ...(process === undefined ? {} : { process }),
  });
  encoders.push(encoder);
  await encoder.start(new AbortController().signal);
  return encoder;
}

/** A clip of moving pictures and a tone, made by ffmpeg itself. */
async function clip(name: string, ...args: string[]): Promise<Buffer> {
  const file = path.join(folder, name);
  await run('ffmpeg', ['-v', 'error', '-y', ...args, file]);
  return readFile(file);
}
const pictures = (seconds: number, size = '640x360'): string[] => [
  ...['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=25:duration=${seconds}`],
];
const tone = (seconds: number): string[] => ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`];
const fast = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];

async function upload(content: Buffer): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  const { rows } = await db.query<{ key: string }>('select source_key as key from videos where id = $1', [
    videoId,
  ]);
  await objects.objects.put(rows[0]?.key ?? '', content);
  await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
  return videoId;
}

interface Video {
  status: string;
  failureCode: string | null;
  failureMessage: string | null;
  qualities: string[];
  durationMs: number;
  indexKey: string;
}
async function videoOf(videoId: string): Promise<Video> {
  const { rows } = await db.query<Video>(
    `select status, failure_code as "failureCode", failure_message as "failureMessage", qualities,
       duration_ms as "durationMs", index_key as "indexKey" from videos where id = $1`,
    [videoId],
  );
  return rows[0] as Video;
}
const settled = (videoId: string): Promise<Video> =>
  waitFor(
    async () => {
      const video = await videoOf(videoId);
      return video.status === 'processing' ? null : video;
    },
    { timeoutMs: 50_000, what: 'the end of the encode' },
  );
async function reportOf(videoId: string): Promise<Record<string, { notes?: { code: string }[] }>> {
  const { rows } = await db.query<{ report: Record<string, { notes?: { code: string }[] }> }>(
    'select report from encode_jobs where video_id = $1',
    [videoId],
  );
  return rows[0]?.report ?? {};
}
const indexOf = async (video: Video): Promise<DeliveryIndex> =>
  deliveryIndex.parse(JSON.parse((await objects.read(video.indexKey)).toString()));

/** The track as a player gets it: init segment, then each segment by its byte range. */
async function fetchTrack(track: DeliveryTrack): Promise<Buffer> {
  const files = await Promise.all(track.objects.map((key) => objects.read(key)));
  const slice = ([object, offset, bytes]: readonly number[]): Buffer =>
    (files[object ?? 0] as Buffer).subarray(offset, (offset ?? 0) + (bytes ?? 0));
  return Buffer.concat([slice(track.init), ...track.segments.map((segment) => slice(segment))]);
}

/** Decodes every frame; returns how many there are and the first time, and throws at any decoder's complaint. */
async function decode(track: DeliveryTrack): Promise<{ frames: number; firstSeconds: number }> {
  const file = path.join(folder, 'decode.mp4');
  await writeFile(file, await fetchTrack(track));
  const { stderr } = await run('ffmpeg', ['-v', 'warning', '-xerror', '-i', file, '-f', 'null', '-']);
  expect(stderr).toBe('');
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file],
  ]);
  const times = [...stdout.matchAll(/^-?[\d.]+/gm)].map(([time]) => Number(time));
  return { frames: times.length, firstSeconds: Math.min(...times) };
}

describe('an encode', () => {
  it('makes a clip ready, with an index whose bytes decode', async () => {
    const source = await clip('clip.mp4', ...pictures(8, '1280x720'), ...tone(8), ...fast, '-c:a', 'aac');
    const videoId = await upload(source);
    await startEncoder();
    const video = await settled(videoId);
    expect(video).toMatchObject({ status: 'ready', qualities: ['360p', '720p'], durationMs: 8_000 });

    const index = await indexOf(video);
    for (const rendition of index.renditions) {
      expect(await decode(rendition)).toEqual({ frames: 200, firstSeconds: 0 });
      expect(rendition.segments.map((segment) => segment[3] / rendition.timescale)).toEqual([6, 2]);
    }
    const sound = index.audio[0] as DeliveryIndex['audio'][number];
    expect((await decode(sound)).firstSeconds).toBe(0);
    const poster = await objects.read(index.files['poster.jpg']?.key ?? '');
    expect(poster.subarray(0, 2).toString('hex')).toBe('ffd8');

    // Nothing but the original and the winners is left.
    const kept = [
      ...index.renditions.flatMap((rendition) => rendition.objects),
      ...sound.objects,
      ...Object.values(index.files).map((file) => file.key),
      video.indexKey,
    ];
    const all = (await objects.all(`videos/${videoId}/`)).map((object) => object.key);
    expect(all.filter((key) => !key.includes('/original/')).sort()).toEqual(kept.sort());
    expect(await readdir(path.join(folder, 'scratch'))).toEqual([]);
    const text = await metrics.render();
    for (const kind of ['plan', 'video', 'audio', 'images', 'assemble']) {
      expect(text).toContain(`millrace_encode_tasks_total{kind="${kind}",result="done",service="encoder"} 1`);
    }
    expect(await reportOf(videoId)).toMatchObject({ source: { container: 'mp4' }, 'video-0': { notes: [] } });
  });
});
