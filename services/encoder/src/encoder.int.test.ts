import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusUnavailableError } from '@millrace/bus';
import { createMemoryBus, type MemoryBus } from '@millrace/bus/memory';
import { deliveryIndex, type DeliveryIndex, type DeliveryTrack, topics } from '@millrace/contract';
import { ObjectStoreError } from '@millrace/objects';
import { createMetrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import {
  createDatabase,
  createEncodeJob,
  type Database,
  DatabaseUnavailableError,
  findIngestReport,
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
import { type EncoderProcess, EncoderProcessError } from './process/encoder-process.ts';
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

async function startEncoder(
  env: Record<string, string> = {},
  instead: { process?: EncoderProcess; store?: Database; bus?: Bus } = {},
): Promise<Service> {
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
    ...{ store: db, bus, objects: objects.objects, clock: systemClock, logger: silentLogger, metrics },
    ...instead,
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
  it('makes a clip ready, with an index whose bytes decode [VID-104, VID-004, VID-005]', async () => {
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
    for (const [, , bytes, , keyBytes] of index.renditions.flatMap((rendition) => rendition.segments)) {
      expect(keyBytes).toBeGreaterThan(0);
      expect(keyBytes).toBeLessThan(bytes);
    }
    const sound = index.audio[0] as DeliveryIndex['audio'][number];
    expect((await decode(sound)).firstSeconds).toBe(0);
    expect(sound.segments.every((segment) => segment[4] === 0)).toBe(true);
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
    await waitFor(async () => (await metrics.render()).includes('kind="assemble",result="done"'));
    const text = await metrics.render();
    for (const kind of ['plan', 'video', 'audio', 'images', 'assemble']) {
      expect(text).toContain(`millrace_encode_tasks_total{kind="${kind}",result="done",service="encoder"} 1`);
    }
    // A clip of some seconds counts as a minute.
    expect(text).toContain('millrace_video_ready_seconds_count{service="encoder"} 1');
    expect(text).toContain('millrace_video_ready_relative_count{service="encoder"} 1');
    const sum = (name: string): number => Number(new RegExp(`${name}_sum{[^}]*} (.*)`).exec(text)?.[1]);
    expect(sum('millrace_video_ready_relative')).toBeCloseTo(sum('millrace_video_ready_seconds') / 60, 6);
    expect(await reportOf(videoId)).toMatchObject({ source: { container: 'mp4' }, 'video-0': { notes: [] } });
  });
});

describe('the ingest report', () => {
  it('says what was seen, what was converted and why, and gives sizes, times and speed [VID-210]', async () => {
    const source = await clip(
      'odd.mp4',
      ...['-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=100:duration=2', ...tone(2)],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv444p', '-c:a', 'aac'],
    );
    const videoId = await upload(source);
    await startEncoder();
    expect((await settled(videoId)).status).toBe('ready');
    const positive = expect.any(Number) as unknown;
    const said = { text: expect.stringMatching(/.{15,}\.$/) as unknown };
    const media = { seconds: positive, speed: positive, bytes: positive, notes: [] };
    const report = await findIngestReport(db, account.projectId, videoId);
    expect(report).toMatchObject({
      ...{ videoId, state: 'succeeded', startedAt: expect.any(String), finishedAt: expect.any(String) },
      details: {
        source: {
          ...{ container: 'mp4', sizeBytes: source.length, durationSeconds: 2, frameRate: '50/1' },
          video: [{ codec: 'h264', width: 640, height: 360, pixelFormat: 'yuv444p', packets: 200 }],
          audio: [{ codec: 'aac', channels: 1, sampleRate: 44_100 }],
        },
        notes: expect.arrayContaining([
          { code: 'pixels_converted', ...said },
          { code: 'rate_divided', ...said },
        ]) as unknown,
        ...{ 'video-0': media, 'audio-0': media, 'images-0': media },
        result: {
          durationSeconds: 2,
          renditions: [{ quality: '360p', width: 640, height: 360, bitsPerSecond: positive }],
          audio: [{ bitsPerSecond: positive }],
        },
      },
    });
  });
});

/** ffmpeg as it is, but the video task at the clip's own speed, so that a test can reach in. */
function pacedProcess(): EncoderProcess & { started: Promise<void> } {
  const real = createFfmpegProcess();
  let tell = (): void => undefined;
  const started = new Promise<void>((resolve) => (tell = resolve));
  return {
    started,
    run: (args, limits, options) => {
      if (!args.some((arg) => arg.endsWith('360p.mp4'))) return real.run(args, limits, options);
      const onProgress = (): void => tell();
      return real.run(['-re', ...args], limits, { ...options, onProgress });
    },
  };
}

/** Processes of this name that this process started. */
async function childrenNamed(name: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return status.includes(`Name:\t${name}\n`) && status.includes(`\nPPid:\t${process.pid}\n`) ? [pid] : [];
    }),
  );
  return found.flat();
}

const short = (): Promise<Buffer> => clip('short.mp4', ...pictures(2, '320x180'), ...fast);
const long = (): Promise<Buffer> => clip('long.mp4', ...pictures(60, '320x180'), ...fast);
const eventsOf = async (videoId: string): Promise<string[]> => {
  const { rows } = await db.query<{ type: string }>('select type from events where video_id = $1', [videoId]);
  return rows.map((row) => row.type);
};
const encoded = async (videoId: string): Promise<string[]> =>
  (await objects.all(`videos/${videoId}/`))
    .map(({ key }) => key)
    .filter((key) => !key.includes('/original/'));
const taskOf = async (videoId: string, kind: string) => {
  const { rows } = await db.query<{ status: string; fence: number; failures: number; losses: number }>(
    'select status, fence, failures, losses from encode_tasks where video_id = $1 and kind = $2',
    [videoId, kind],
  );
  return rows[0];
};

describe('sources that cannot be encoded', () => {
  const tests: [string, string, () => Promise<Buffer> | Buffer][] = [
    ['an empty file', 'invalid_file', () => Buffer.alloc(0)],
    ['text', 'invalid_file', () => Buffer.from('Not a video at all.\n'.repeat(100))],
    ['noise', 'invalid_file', () => Buffer.alloc(60_000, 'x1y2')],
    [
      'a playlist in disguise',
      'invalid_file',
      () => Buffer.from('#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n'),
    ],
    ['a file without its index', 'invalid_file', async () => (await short()).subarray(0, 20_000)],
    ['sound only', 'no_video_track', () => clip('sound.mp4', ...tone(2), '-c:a', 'aac')],
    ['a still picture', 'no_video_track', () => clip('still.png', ...pictures(1), '-frames:v', '1')],
  ];

  it('fail with the right code, a message, one event, and no object [VID-105, ENC-014, ENC-017]', async () => {
    const uploads = [];
    for (const [name, code, make] of tests) uploads.push({ name, code, videoId: await upload(await make()) });
    await startEncoder();
    for (const { name, code, videoId } of uploads) {
      const video = await settled(videoId);
      expect([name, video.status, video.failureCode]).toEqual([name, 'failed', code]);
      expect(video.failureMessage?.length).toBeGreaterThan(20);
      expect([name, await eventsOf(videoId)]).toEqual([name, ['video.failed']]);
      expect([name, await encoded(videoId)]).toEqual([name, []]);
      expect(await taskOf(videoId, 'plan')).toMatchObject({ status: 'failed', fence: 1 });
    }
  });

  it('fail when their content is not what the upload token was bound to [UPT-227]', async () => {
    const videoId = await upload(await short());
    await db.query(
      `insert into uploads (id, video_id, project_id, account_id, object_key, store_upload_id, state,
         declared_bytes, content_type, part_size_bytes, part_count, bound_content_type, created_at, expires_at)
       values ($1, $2, $3, $4, 'k', 'u', 'completed', 1, 'video/webm', 1, 1, 'video/webm', now(), now())`,
      [`upl_${videoId}`, videoId, account.projectId, account.accountId],
    );
    await startEncoder();
    expect(await settled(videoId)).toMatchObject({ status: 'failed', failureCode: 'invalid_file' });
  });
});

describe('trouble', () => {
  it('plays silent when the sound cannot be decoded, and says so in the report [ENC-011]', async () => {
    const real = createFfmpegProcess();
    const videoId = await upload(await clip('loud.mp4', ...pictures(2, '320x180'), ...tone(2), ...fast));
    await startEncoder(
      {},
      {
        process: {
          run: (args, limits, options) =>
            args.some((arg) => arg.endsWith('audio-0.mp4'))
              ? Promise.reject(
                  new EncoderProcessError(
                    'exit',
                    'ffmpeg exited with code 1',
                    'Error while decoding stream #0:1',
                  ),
                )
              : real.run(args, limits, options),
        },
      },
    );
    const video = await settled(videoId);
    expect(video.status).toBe('ready');
    expect((await indexOf(video)).audio).toEqual([]);
    expect((await reportOf(videoId))['audio-0']?.notes?.map((note) => note.code)).toEqual([
      'sound_undecodable',
    ]);
  });

  it('encodes again when ffmpeg is killed, and ends with whole renditions', async () => {
    const process_ = pacedProcess();
    const videoId = await upload(await clip('three.mp4', ...pictures(3, '320x180'), ...fast));
    await startEncoder({}, { process: process_ });
    await process_.started;
    for (const pid of await childrenNamed('ffmpeg')) process.kill(pid, 'SIGKILL');
    const waiting = await waitFor(async () => {
      const task = await taskOf(videoId, 'video');
      return task?.failures === 1 ? task : null;
    });
    expect(waiting).toMatchObject({ status: 'queued', losses: 0 });
    await db.query('update encode_tasks set run_after = now() where video_id = $1', [videoId]);
    const video = await settled(videoId);
    expect(video.status).toBe('ready');
    expect(await decode((await indexOf(video)).renditions[0] as DeliveryTrack)).toEqual({
      frames: 75,
      firstSeconds: 0,
    });
    expect(await eventsOf(videoId)).toEqual(['video.ready']);
  });

  it('fails with encoding_failed when each try takes too long [ENC-020]', async () => {
    const real = createFfmpegProcess();
    const videoId = await upload(await long());
    await startEncoder(
      {},
      {
        process: {
          run: (args, limits, options) =>
            args.some((arg) => arg.endsWith('360p.mp4'))
              ? real.run(['-re', ...args], { ...limits, wallMs: 100 }, options)
              : real.run(args, limits, options),
        },
      },
    );
    for (const failures of [1, 2]) {
      await waitFor(async () => (await taskOf(videoId, 'video'))?.failures === failures, {
        what: `try ${failures} to end`,
      });
      await db.query(`update encode_tasks set run_after = now() where video_id = $1 and kind = 'video'`, [
        videoId,
      ]);
    }
    expect(await settled(videoId)).toMatchObject({ status: 'failed', failureCode: 'encoding_failed' });
    const { rows } = await db.query<{ message: string }>(
      `select last_error ->> 'message' as message from encode_tasks where video_id = $1 and kind = 'video'`,
      [videoId],
    );
    expect(rows[0]?.message).toContain('it ran longer than 100 ms');
  });

  it('stops at once when the video is deleted, and leaves no object and no event [VID-117]', async () => {
    const paced = pacedProcess();
    const videoId = await upload(await long());
    await startEncoder({ ENCODER_LEASE_MS: '600' }, { process: paced });
    await paced.started;
    await db.transaction((tx) =>
      moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }),
    );
    await waitFor(async () => (await childrenNamed('ffmpeg')).length === 0, { what: 'the end of ffmpeg' });
    await waitFor(async () => (await readdir(path.join(folder, 'scratch'))).length === 0);
    expect(await eventsOf(videoId)).toEqual([]);
    const { rows } = await db.query(
      'select from object_prefixes where video_id = $1 and delete_after is null',
      [videoId],
    );
    expect(rows).toEqual([]);
  });

  it('removes what it stored while the video was deleted', async () => {
    const videoId = await upload(await short());
    let stored = '';
    objects.interfere = async (method, key) => {
      if (method !== 'put' || !key.endsWith('360p.mp4')) return;
      stored = key;
      await db.transaction((tx) =>
        moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }),
      );
    };
    await startEncoder();
    await waitFor(async () => (await metrics.render()).includes('kind="video",result="lost"'), {
      what: 'the end of the attempt',
    });
    expect(stored).not.toBe('');
    expect(await encoded(videoId)).not.toContain(stored);
  });

  it('sits out an outage of the object store', async () => {
    const videoId = await upload(await short());
    let puts = 0;
    let gets = 0;
    objects.interfere = (method) => {
      if ((method === 'put' && puts++ < 2) || (method === 'get' && gets++ < 2)) {
        throw new ObjectStoreError('unavailable', 'the store is away');
      }
    };
    await startEncoder();
    expect((await settled(videoId)).status).toBe('ready');
    expect(await taskOf(videoId, 'video')).toMatchObject({ fence: 1, failures: 0 });
  });

  it('does not hold an outage that lasts against the file', async () => {
    const videoId = await upload(await short());
    objects.interfere = (method) => {
      if (method === 'head') throw new ObjectStoreError('unavailable', 'the store is away');
    };
    await startEncoder();
    await waitFor(async () => ((await taskOf(videoId, 'plan'))?.fence ?? 0) >= 2, { what: 'a second try' });
    expect(await taskOf(videoId, 'plan')).toMatchObject({ failures: 0, losses: 0 });
    expect(await metrics.render()).toMatch(
      /^millrace_encode_troubles_total\{kind="infrastructure",outcome="retry",service="encoder"\} [1-9]/m,
    );
    objects.interfere = null;
    expect((await settled(videoId)).status).toBe('ready');
  });

  it('keeps its result when the record took it but the answer was lost', async () => {
    const lost = new Set<string>();
    const store: Database = {
      ...db,
      transaction: async (work) => {
        let name: string | undefined;
        const result = await db.transaction((tx) =>
          work({
            ...tx,
            query: (text, values, statement) => {
              if (statement === 'job-count-down' || statement === 'video-move') name = statement;
              return tx.query(text, values, statement);
            },
          }),
        );
        if (name === undefined || lost.has(name)) return result;
        lost.add(name);
        throw new DatabaseUnavailableError('the answer was lost');
      },
    };
    const videoId = await upload(await short());
    await startEncoder({}, { store });
    const video = await settled(videoId);
    expect(video.status).toBe('ready');
    await waitFor(async () => (await metrics.render()).includes('kind="assemble",result="done"'));
    expect([...lost].sort()).toEqual(['job-count-down', 'video-move']);
    await decode((await indexOf(video)).renditions[0] as DeliveryTrack);
  });
});

describe('encoders', () => {
  it('hand their tasks back when they stop, and another goes on', async () => {
    const paced = pacedProcess();
    const videoId = await upload(await clip('three.mp4', ...pictures(3, '320x180'), ...fast));
    const first = await startEncoder({}, { process: paced });
    await paced.started;
    await first.stop();
    expect(await taskOf(videoId, 'video')).toMatchObject({ status: 'queued', losses: 0, failures: 0 });
    expect(await childrenNamed('ffmpeg')).toEqual([]);
    await startEncoder();
    expect((await settled(videoId)).status).toBe('ready');
  });

  it('let a task end within the time to drain', async () => {
    const paced = pacedProcess();
    const videoId = await upload(await clip('three.mp4', ...pictures(3, '320x180'), ...fast));
    const first = await startEncoder({ ENCODER_DRAIN_MS: '30000' }, { process: paced });
    await paced.started;
    await first.stop();
    expect(await taskOf(videoId, 'video')).toMatchObject({ status: 'done', fence: 1 });
  });

  it('hand back what they claimed while they stopped, before they have stopped', async () => {
    const claimed = Promise.withResolvers<undefined>();
    const goOn = Promise.withResolvers<undefined>();
    const order: string[] = [];
    const store: Database = {
      ...db,
      transaction: async (work) => {
        let statement: string | undefined;
        const result = await db.transaction((tx) =>
          work({
            ...tx,
            query: async (text, values, name) => {
              if (name === 'task-claim' || name === 'task-release') statement = name;
              // The record is slow: a stop that does not wait for this is over before.
              if (name === 'task-release') await tx.query('select pg_sleep(0.5)');
              return tx.query(text, values, name);
            },
          }),
        );
        if (statement === 'task-release') order.push('released');
        if (statement !== 'task-claim') return result;
        // The record has given a task out; its answer takes its time.
        claimed.resolve(undefined);
        await goOn.promise;
        return result;
      },
    };
    const videoId = await upload(await short());
    const encoder = await startEncoder({}, { store });
    await claimed.promise;
    const stopped = encoder.stop().then(() => order.push('stopped'));
    // The answer comes when the stop has seen that nothing runs.
    await db.query('select 1');
    goOn.resolve(undefined);
    await stopped;
    expect(order).toEqual(['released', 'stopped']);
    expect(await taskOf(videoId, 'plan')).toMatchObject({ status: 'queued', losses: 0 });
  });

  it('work from the record while the bus is away, and take permits once it is there', async () => {
    let away = true;
    const absent: Bus = {
      ...bus,
      subscribe: (...args) =>
        away ? Promise.reject(new BusUnavailableError('the bus is away')) : bus.subscribe(...args),
    };
    const encoder = await startEncoder({}, { bus: absent });
    await waitFor(() => encoder.health().checks['consume-tasks'] === 'the bus is away');
    expect(encoder.health()).toMatchObject({ healthy: true, ready: false });
    expect((await settled(await upload(await short()))).status).toBe('ready');
    away = false;
    await waitFor(() => encoder.health().ready, { what: 'the encoder to be ready' });
    const topic = topics.encodeTasks.name;
    await bus.publish([{ topic, key: 'tsk_any', value: { v: 1, taskId: 'tsk_any', kind: 'plan' } }]);
    const handled = `millrace_bus_consumed_total{topic="${topic}",outcome="handled",service="encoder"} 1`;
    await waitFor(async () => (await metrics.render()).includes(handled), { what: 'the permit to be taken' });
  });

  it('lose a task whose lease they could not renew, and remove what they wrote', async () => {
    const paced = pacedProcess();
    const videoId = await upload(await clip('three.mp4', ...pictures(3, '320x180'), ...fast));
    // As if this process stood still or its network were cut, from the moment on that its ffmpeg runs.
    let cut = false;
    const cutOff: Database = {
      ...db,
      query: (text, values, name) =>
        cut && name === 'task-heartbeat'
          ? Promise.reject(new DatabaseUnavailableError('cut off'))
          : db.query(text, values, name),
      // Nor does it get another task, whose lease would run out too.
      transaction: (work) =>
        db.transaction((tx) =>
          work({
            ...tx,
            query: (text, values, name) =>
              cut && name === 'task-claim-lock'
                ? Promise.reject(new DatabaseUnavailableError('cut off'))
                : tx.query(text, values, name),
          }),
        ),
    };
    await startEncoder({ ENCODER_LEASE_MS: '3000', ENCODER_SLOTS: '1' }, { process: paced, store: cutOff });
    await paced.started;
    cut = true;
    await waitFor(async () => (await reapExpiredLeases(db)) > 0, { what: 'the lease to expire' });
    await startEncoder();
    const video = await settled(videoId);
    expect(video.status).toBe('ready');
    expect(await eventsOf(videoId)).toEqual(['video.ready']);
    await waitFor(async () => (await metrics.render()).includes('kind="video",result="lost"'));
    const index = await indexOf(video);
    const kept = [...index.renditions.flatMap(({ objects: keys }) => keys), video.indexKey];
    kept.push(...Object.values(index.files).map(({ key }) => key));
    await waitFor(async () => (await encoded(videoId)).length === kept.length, { what: 'the losers to go' });
    expect((await encoded(videoId)).sort()).toEqual(kept.sort());
  });

  it('park and count what is no permit, and look all the same at the next one', async () => {
    await startEncoder({ ENCODER_IDLE_MS: '600000' });
    await waitFor(async () =>
      (await metrics.render()).includes('last_success_timestamp_seconds{loop="idle-look"'),
    );
    const topic = topics.encodeTasks.name;
    const videoId = await upload(await short());
    const bodies = ['not json', { v: 99 }, { v: 1, taskId: 'tsk_any', kind: 'plan' }];
    await bus.publish(bodies.map((value) => ({ topic, key: 'same', value })));
    expect((await settled(videoId)).status).toBe('ready');
    expect(bus.read(`${topic}.dead`).map(({ value }) => value)).toEqual(['"not json"', '{"v":99}']);
    const counted = (outcome: string): string =>
      `millrace_bus_consumed_total{topic="${topic}",outcome="${outcome}",service="encoder"}`;
    expect(await metrics.render()).toContain(`${counted('dead')} 2`);
    expect(await metrics.render()).toContain(`${counted('handled')} 1`);
  });

  it('leave the work to others, and say that they are not ready, without room on their scratch', async () => {
    const full = await startEncoder({
      ...{ ENCODER_SCRATCH_SPARE_BYTES: String(Number.MAX_SAFE_INTEGER), ENCODER_WORKER: 'full' },
    });
    await waitFor(() => full.health().checks['scratch'] === 'no room');
    expect(full.health()).toMatchObject({ healthy: true, ready: false });
    const videoId = await upload(await short());
    await startEncoder({ ENCODER_WORKER: 'roomy' });
    expect((await settled(videoId)).status).toBe('ready');
    const { rows } = await db.query<{ worker: string }>(
      'select distinct worker from encode_tasks where video_id = $1',
      [videoId],
    );
    expect(rows).toEqual([{ worker: 'roomy' }]);
  });

  it('take a permit for a look, and give it back only when the record cannot be asked', async () => {
    let failures = 1;
    const store: Database = {
      ...db,
      transaction: (work) =>
        failures-- > 0 ? Promise.reject(new DatabaseUnavailableError('away')) : db.transaction(work),
    };
    // The idle look sleeps through this test after its first, which finds nothing.
    failures = 0;
    await startEncoder({ ENCODER_IDLE_MS: '600000' }, { store });
    await waitFor(async () =>
      (await metrics.render()).includes('last_success_timestamp_seconds{loop="idle-look"'),
    );
    failures = 1;
    const videoId = await upload(await short());
    const topic = topics.encodeTasks.name;
    await bus.publish([{ topic, key: 'tsk_any', value: { v: 1, taskId: 'tsk_any', kind: 'plan' } }]);
    expect((await settled(videoId)).status).toBe('ready');
    expect(failures).toBeLessThan(0);
    await waitFor(async () => [...(await bus.lag('encoder', topic)).values()].every((lag) => lag === 0));
  });
});
