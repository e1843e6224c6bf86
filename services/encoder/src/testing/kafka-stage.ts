import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createKafkaBus, type KafkaBus } from '@millrace/bus/kafka';
import { topics } from '@millrace/contract';
import { createS3ObjectStore } from '@millrace/objects/s3';
import { silentLogger } from '@millrace/platform';
import { createDatabase, createEncodeJob, type Database } from '@millrace/store';
import { createTestDatabase, type SeededAccount, seedProcessingVideo, waitFor } from '@millrace/testing';
import { startKafkaBroker } from '../../../../dev/kafka/broker.ts';
import { createBucket } from '../../../../dev/s3/bucket.ts';
import { startS3Server } from '../../../../dev/s3/server.ts';
import { pacedFfmpeg, type PacedFfmpeg, startWorker, type WorkerProcess } from './worker-process.ts';

/** How long a loaded machine may take for anything. */
export const patience = { timeoutMs: 90_000 };

export interface StagedEncoder {
  name: string;
  ffmpeg: PacedFfmpeg;
  worker: WorkerProcess;
}

/** Kafka, an S3 server and PostgreSQL, and a reconciler of its own process that relays what is committed. */
export interface KafkaStage {
  folder: string;
  db: Database;
  objects: ReturnType<typeof createS3ObjectStore>;
  /** A bus of its own, which the caller closes. */
  openBus(options?: Partial<Parameters<typeof createKafkaBus>[0]>): KafkaBus;
  /** Starts an encoder as a process of its own, with one slot unless told. */
  startEncoder(name: string, env: NodeJS.ProcessEnv): Promise<StagedEncoder>;
  /** Puts an original in place and its job in the queue; answers with the video's id. */
  upload(account: SeededAccount, original: Buffer): Promise<string>;
  /** Waits until the video is ready, and all that was committed on the way has gone through Kafka. */
  delivered(videoId: string): Promise<void>;
  /** How many `video.ready` of the video the record has, and how many were published. */
  readyEvents(videoId: string): Promise<{ recorded: number; published: number }>;
  /** Ends the encoders, and takes what is left in the queue away. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** Starts all of it; when that fails, ends what was started. */
export async function createKafkaStage(): Promise<KafkaStage> {
  const ends = new AsyncDisposableStack();
  try {
    return await openStage(ends);
  } catch (error) {
    await ends.disposeAsync();
    throw error;
  }
}

/** @param ends what ends each part, the last one first */
async function openStage(ends: AsyncDisposableStack): Promise<KafkaStage> {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-on-kafka-'));
  ends.defer(() => rm(folder, { recursive: true }));
  // Those that start take part in the end even when another does not.
  const started = await Promise.allSettled([
    createTestDatabase().then((made) => ends.adopt(made, () => made.drop())),
    startKafkaBroker().then((made) => ends.adopt(made, () => made.stop())),
    startS3Server().then((made) => ends.adopt(made, () => made.stop())),
  ]);
  const [testDatabase, broker, s3] = allOf(started);
  const db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
  ends.defer(() => db.close());
  const bucket = await createBucket(s3);
  const objects = createS3ObjectStore(bucket);
  ends.defer(() => objects.close());
  const openBus: KafkaStage['openBus'] = (options) =>
    createKafkaBus({
      connection: { brokers: [broker.address], clientId: 'test' },
      ...{ logger: silentLogger, ...options },
    });
  const bus = openBus();
  ends.defer(() => bus.close());
  await bus.ensureTopics();
  const settings = {
    DATABASE_URL: testDatabase.connectionString,
    ...{ KAFKA_BROKERS: broker.address, KAFKA_REPLICATION_FACTOR: '1' },
    ...{ S3_BUCKET: bucket.bucket, S3_ENDPOINT: s3.endpoint, S3_PATH_STYLE: 'true' },
    S3_ACCESS_KEY_ID: s3.credentials.accessKeyId,
    S3_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
  };
  const reconciler = startWorker('reconciler', settings);
  ends.defer(() => reconciler.terminate().then(() => undefined));
  let workers: WorkerProcess[] = [];
  const announced: string[] = [];
  await bus.subscribe('test', topics.videoEvents.name, ({ value }) => {
    const { type, videoId } = topics.videoEvents.schema.parse(JSON.parse(value));
    if (type === 'video.ready') announced.push(videoId);
    return Promise.resolve();
  });
  const clear = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.terminate()));
    workers = [];
    await db.query(`update encode_tasks set status = 'cancelled' where status in ('queued', 'processing')`);
    await db.query('delete from encode_pauses');
  };
  ends.defer(clear);
  return {
    ...{ folder, db, objects, openBus, clear, close: () => ends.disposeAsync() },
    startEncoder: async (name, env) => {
      const own = await mkdtemp(path.join(folder, `${name}-`));
      const ffmpeg = await pacedFfmpeg(path.join(own, 'bin'));
      const worker = startWorker('encoder', {
        ...settings,
        ...{ ENCODER_WORKER: name, ENCODER_SCRATCH_DIR: path.join(own, 'scratch'), PATH: ffmpeg.path },
        ...{ ENCODER_SLOTS: '1', ENCODER_THREADS: '1', ENCODER_PRESET: 'ultrafast', ...env },
      });
      workers.push(worker);
      return { name, ffmpeg, worker };
    },
    upload: async (account, original) => {
      const videoId = await seedProcessingVideo(db, account);
      await objects.put(`videos/${videoId}/original/source`, original);
      await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
      return videoId;
    },
    delivered: async (videoId) => {
      const ready = `select from videos where id = $1 and status = 'ready'`;
      await waitFor(async () => (await db.query(ready, [videoId])).rowCount > 0, {
        ...patience,
        what: `the video; ${workers.map((worker) => worker.lastWords()).join('\n')}`,
      });
      const events = topics.videoEvents.name;
      const waiting = 'select from outbox where topic = $1';
      await waitFor(async () => (await db.query(waiting, [events])).rowCount === 0, patience);
      await waitFor(async () => {
        const lag = await bus.lag('test', events);
        return announced.includes(videoId) && [...lag.values()].every((messages) => messages === 0);
      }, patience);
    },
    readyEvents: async (videoId) => ({
      recorded: (await db.query(`select from events where video_id = $1 and type = 'video.ready'`, [videoId]))
        .rowCount,
      published: announced.filter((id) => id === videoId).length,
    }),
  };
}

/** @throws the first reason when one of them was rejected */
function allOf<T extends readonly unknown[]>(settled: {
  readonly [K in keyof T]: PromiseSettledResult<T[K]>;
}): T {
  for (const each of settled as readonly PromiseSettledResult<unknown>[])
    if (each.status === 'rejected') throw each.reason;
  return settled.map((each) => (each as PromiseFulfilledResult<unknown>).value) as unknown as T;
}
