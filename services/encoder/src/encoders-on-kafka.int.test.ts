import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { createKafkaBus, type KafkaBus } from '@millrace/bus/kafka';
import { topics } from '@millrace/contract';
import { createS3ObjectStore, type S3ObjectStoreOptions } from '@millrace/objects/s3';
import { createMetrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, createEncodeJob, type Database } from '@millrace/store';
import {
  captureLogger,
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
  waitFor,
} from '@millrace/testing';
import { type KafkaBroker, startKafkaBroker } from '../../../dev/kafka/broker.ts';
import { missingForKafka } from '../../../dev/kafka/jars.ts';
import { describeWith } from '../../../dev/real-part.ts';
import { createBucket } from '../../../dev/s3/bucket.ts';
import { type S3Server, startS3Server } from '../../../dev/s3/server.ts';
import { missingForS3 } from '../../../dev/s3/versitygw.ts';
import { createEncoder, encoderConfig } from './index.ts';
import { createFfmpegProcess } from './process/fluent-ffmpeg-process.ts';
import { pacedFfmpeg, type PacedFfmpeg, startWorker, type WorkerProcess } from './testing/worker-process.ts';

jest.setTimeout(180_000);
const patience = { timeoutMs: 90_000 };
const clipSeconds = 5;

/** Two encoders on Kafka, an S3 server and PostgreSQL, and a reconciler that relays what is committed. */
describeWith(missingForKafka() ?? missingForS3(), 'encoders on Kafka', () => {
  let testDatabase: TestDatabase;
  let db: Database;
  let broker: KafkaBroker;
  let s3: S3Server;
  let bucket: S3ObjectStoreOptions;
  let objects: ReturnType<typeof createS3ObjectStore>;
  let bus: KafkaBus;
  let settings: NodeJS.ProcessEnv;
  let reconciler: WorkerProcess;
  let clip: Buffer;
  let folder: string;
  let account: SeededAccount;
  /** Every `video.ready` that was published, by video. */
  const announced: string[] = [];
  let workers: WorkerProcess[] = [];
  let encoders: Service[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'millrace-on-kafka-'));
    [testDatabase, broker, s3] = await Promise.all([
      createTestDatabase(),
      startKafkaBroker(),
      startS3Server(),
    ]);
    db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
    bucket = await createBucket(s3);
    objects = createS3ObjectStore(bucket);
    bus = openBus();
    await bus.ensureTopics();
    settings = {
      DATABASE_URL: testDatabase.connectionString,
      ...{ KAFKA_BROKERS: broker.address, KAFKA_REPLICATION_FACTOR: '1' },
      ...{ S3_BUCKET: bucket.bucket, S3_ENDPOINT: s3.endpoint, S3_PATH_STYLE: 'true' },
      S3_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      S3_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    };
    reconciler = startWorker('reconciler', settings);
    await bus.subscribe('test', topics.videoEvents.name, ({ value }) => {
      const { type, videoId } = topics.videoEvents.schema.parse(JSON.parse(value));
      if (type === 'video.ready') announced.push(videoId ?? '');
      return Promise.resolve();
    });
    const file = path.join(folder, 'clip.mp4');
    const pictures = `testsrc2=size=320x180:rate=25:duration=${clipSeconds}`;
    await promisify(execFile)('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', pictures, '-c:v', 'libx264', '-preset', 'ultrafast'],
      ...['-pix_fmt', 'yuv420p', file],
    ]);
    clip = await readFile(file);
  }, 20 * 60_000);
  afterAll(async () => {
    await reconciler.terminate();
    await bus.close();
    await objects.close();
    await Promise.all([broker.stop(), s3.stop(), db.close()]);
    await testDatabase.drop();
    await rm(folder, { recursive: true });
  });
  beforeEach(async () => {
    account = await seedAccount(db);
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.terminate()));
    await Promise.all(encoders.map((encoder) => encoder.stop()));
    [workers, encoders] = [[], []];
  });

  const openBus = (options: Partial<Parameters<typeof createKafkaBus>[0]> = {}): KafkaBus =>
    createKafkaBus({
      connection: { brokers: [broker.address], clientId: 'test' },
      ...{ logger: silentLogger, ...options },
    });

  async function upload(): Promise<string> {
    const videoId = await seedProcessingVideo(db, account);
    await objects.put(`videos/${videoId}/original/source`, clip);
    await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
    return videoId;
  }

  interface Task {
    status: string;
    fence: number;
    losses: number;
    failures: number;
    worker: string | null;
  }
  async function videoTask(videoId: string): Promise<Task | null> {
    const { rows } = await db.query<Task>(
      `select status, fence, losses, failures, worker from encode_tasks where video_id = $1 and kind = 'video'`,
      [videoId],
    );
    return rows[0] ?? null;
  }

  /** Waits until the video is ready, and all that was committed on the way has gone through Kafka. */
  async function delivered(videoId: string): Promise<void> {
    await waitFor(
      async () =>
        (await db.query(`select from videos where id = $1 and status = 'ready'`, [videoId])).rowCount,
      { ...patience, what: `the video; ${workers.map((worker) => worker.lastWords()).join('\n')}` },
    );
    await waitFor(async () => (await db.query('select from outbox')).rowCount === 0, patience);
    await waitFor(async () => {
      const lag = await bus.lag('test', topics.videoEvents.name);
      return announced.includes(videoId) && [...lag.values()].every((messages) => messages === 0);
    }, patience);
  }

  /** Starts two encoders, uploads, and ends the one that makes the video as soon as it has begun. */
  async function terminateMidway(env: NodeJS.ProcessEnv): Promise<{ videoId: string; stopped: string }> {
    const started: { name: string; ffmpeg: PacedFfmpeg; worker: WorkerProcess }[] = [];
    for (const name of ['one', 'two']) {
      const own = await mkdtemp(path.join(folder, `${name}-`));
      const ffmpeg = await pacedFfmpeg(path.join(own, 'bin'));
      const worker = startWorker('encoder', {
        ...settings,
        ...{ ENCODER_WORKER: name, ENCODER_SCRATCH_DIR: path.join(own, 'scratch'), PATH: ffmpeg.path },
        ...{ ENCODER_SLOTS: '1', ENCODER_THREADS: '1', ENCODER_PRESET: 'ultrafast', ...env },
      });
      workers.push(worker);
      started.push({ name, ffmpeg, worker });
    }
    const videoId = await upload();
    const busy = await waitFor(
      async () => {
        for (const each of started) if (await each.ffmpeg.hasBegun()) return each;
        return null;
      },
      { ...patience, what: 'ffmpeg to begin' },
    );
    expect(await busy.worker.terminate()).toBe(0);
    return { videoId, stopped: busy.name };
  }
  const other = (name: string): string => (name === 'one' ? 'two' : 'one');
  const readyEvents = async (videoId: string): Promise<number> =>
    (await db.query(`select from events where video_id = $1 and type = 'video.ready'`, [videoId])).rowCount;

  it('lets the encode end within the grace time when one is terminated midway', async () => {
    const { videoId, stopped } = await terminateMidway({ ENCODER_DRAIN_MS: '25000' });
    expect(await videoTask(videoId)).toMatchObject({ status: 'done', fence: 1, worker: stopped });
    await delivered(videoId);
    expect(await readyEvents(videoId)).toBe(1);
    expect(announced.filter((id) => id === videoId)).toHaveLength(1);
  });

  it('hands the encode to the other at once when there is no time, and counts nothing as lost', async () => {
    const { videoId, stopped } = await terminateMidway({ ENCODER_DRAIN_MS: '0' });
    await delivered(videoId);
    // The other one did it from its start; a lease that ran out would have counted as a loss.
    expect(await videoTask(videoId)).toMatchObject({
      ...{ status: 'done', fence: 2, losses: 0, failures: 0, worker: other(stopped) },
    });
    expect(await readyEvents(videoId)).toBe(1);
    expect(announced.filter((id) => id === videoId)).toHaveLength(1);
  });

  it('work on a video for several session timeouts, once, while the group stays calm', async () => {
    const log = captureLogger();
    const sessionMs = 1_500;
    const real = createFfmpegProcess();
    const buses = [0, 1].map(() => openBus({ logger: log.logger, times: { sessionMs, heartbeatMs: 200 } }));
    for (const [i, each] of buses.entries()) {
      const encoder = createEncoder({
        config: encoderConfig.parse({
          ...{ ENCODER_SLOTS: '1', ENCODER_THREADS: '1', ENCODER_PRESET: 'ultrafast', ENCODER_DRAIN_MS: '0' },
          ...{ ENCODER_SCRATCH_DIR: path.join(folder, `calm-${i}`), ENCODER_LEASE_MS: '3000' },
        }),
        ...{ store: db, bus: each, objects, clock: systemClock, logger: silentLogger },
        metrics: createMetrics({ service: 'encoder' }),
        process: {
          run: (args, ...rest) =>
            real.run(args.some((arg) => arg.endsWith('360p.mp4')) ? ['-re', ...args] : args, ...rest),
        },
      });
      encoders.push({ ...encoder, stop: () => encoder.stop().then(() => each.close()) });
      await encoder.start(new AbortController().signal);
    }
    const assignments = (): number =>
      log.lines.filter(({ message }) => message === 'partitions assigned').length;
    await waitFor(() => assignments() >= 2, patience);
    const videoId = await upload();
    await waitFor(async () => (await videoTask(videoId))?.status === 'processing', patience);
    const before = assignments();
    await delivered(videoId);
    const { rows } = await db.query<{ seconds: number }>(
      `select extract(epoch from finished_at - started_at)::float8 as seconds from encode_tasks
       where video_id = $1 and kind = 'video'`,
      [videoId],
    );
    expect(rows[0]?.seconds).toBeGreaterThan((3 * sessionMs) / 1_000);
    expect(await videoTask(videoId)).toMatchObject({ status: 'done', fence: 1, losses: 0 });
    // A starved machine may miss one session; a group that rebalances in a loop has several a session.
    expect(assignments() - before).toBeLessThan(5);
    expect(await readyEvents(videoId)).toBe(1);
    expect(announced.filter((id) => id === videoId)).toHaveLength(1);
  });
});
