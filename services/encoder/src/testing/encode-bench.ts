import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createMemoryBus } from '@millrace/bus/memory';
import { deliveryIndex, type DeliveryIndex, type DeliveryTrack } from '@millrace/contract';
import { createMetrics, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, createEncodeJob, type Database } from '@millrace/store';
import {
  createTestDatabase,
  createTestObjects,
  seedAccount,
  seedProcessingVideo,
  type TestObjects,
  waitFor,
} from '@millrace/testing';
import { createEncoder, encoderConfig, type EncoderProcess } from '../index.ts';

/** How an encode ended, as the record has it. */
export interface EncodeResult {
  status: string;
  failureCode: string | null;
  failureMessage: string | null;
  qualities: string[];
  /** Null unless ready. */
  index: DeliveryIndex | null;
  /** Codes of all notes in the ingest report. */
  notes: string[];
}

/** An encoder on a record and an object store of its own. */
export interface EncodeBench {
  /** Puts an original in place and its job in the queue; answers with the video's id. */
  submit(source: Buffer): Promise<string>;
  /** Waits for the end of the encode. */
  result(videoId: string): Promise<EncodeResult>;
  /** A track as a player gets it: the init segment, then each segment by its byte range. */
  fetch(track: DeliveryTrack): Promise<Buffer>;
  read(key: string): Promise<Buffer>;
  db: Database;
  connectionString: string;
  objects: TestObjects;
  /** Ends the encoder alone, so that another takes its place. */
  stopEncoder(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts the whole service: real ffmpeg, real PostgreSQL, a folder for the objects.
 *
 * @param env settings over the usual ones
 */
export async function createEncodeBench(
  env: Readonly<Record<string, string>> = {},
  { process }: { process?: EncoderProcess } = {},
): Promise<EncodeBench> {
  const testDatabase = await createTestDatabase();
  const db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
  const scratch = await mkdtemp(path.join(tmpdir(), 'millrace-media-test-'));
  const objects = await createTestObjects();
  const bus = createMemoryBus();
  const account = await seedAccount(db);
  const encoder = createEncoder({
    config: encoderConfig.parse({
      ENCODER_SLOTS: '2',
      ENCODER_THREADS: '1',
      ENCODER_IDLE_MS: '20',
      ENCODER_DRAIN_MS: '0',
      ENCODER_SCRATCH_DIR: scratch,
      ...env,
    }),
    store: db,
    bus,
    objects: objects.objects,
    clock: systemClock,
    logger: silentLogger,
    metrics: createMetrics({ service: 'encoder' }),
    ...(process === undefined ? {} : { process }),
  });
  await encoder.start(new AbortController().signal);
  let stopped: Promise<void> | undefined;
  const stopEncoder = (): Promise<void> => (stopped ??= encoder.stop());
  return {
    submit: async (source) => {
      const videoId = await seedProcessingVideo(db, account);
      await objects.objects.put(`videos/${videoId}/original/source`, source);
      await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
      return videoId;
    },
    result: async (videoId) => {
      const row = await settled(db, videoId);
      const index = row.indexKey === null ? null : await objects.read(row.indexKey);
      return {
        ...row,
        index: index === null ? null : deliveryIndex.parse(JSON.parse(index.toString())),
        notes: notesIn(row.report),
      };
    },
    fetch: async (track) => {
      const files = await Promise.all(track.objects.map((key) => objects.read(key)));
      const slice = ([object, offset, bytes]: readonly [number, number, number, ...number[]]): Buffer =>
        (files[object] ?? Buffer.alloc(0)).subarray(offset, offset + bytes);
      return Buffer.concat([slice(track.init), ...track.segments.map((segment) => slice(segment))]);
    },
    read: (key) => objects.read(key),
    ...{ db, objects, connectionString: testDatabase.connectionString, stopEncoder },
    close: async () => {
      await stopEncoder();
      await bus.close();
      await objects.close();
      await db.close();
      await testDatabase.drop();
      await rm(scratch, { recursive: true });
    },
  };
}

interface VideoRow extends Omit<EncodeResult, 'index' | 'notes'> {
  indexKey: string | null;
  report: unknown;
}

/** Asks the record; an encode may wait for those before it. */
const settled = (db: Database, videoId: string): Promise<VideoRow> =>
  waitFor(
    async () => {
      const { rows } = await db.query<VideoRow>(
        `select v.status, v.failure_code as "failureCode", v.failure_message as "failureMessage", v.qualities,
           v.index_key as "indexKey", j.report
         from videos v left join encode_jobs j on j.id = v.current_job_id where v.id = $1`,
        [videoId],
      );
      return rows[0]?.status === 'processing' ? null : rows[0];
    },
    { timeoutMs: 150_000, what: 'the end of the encode' },
  );

/** The report has one list of notes for each task. */
function notesIn(report: unknown): string[] {
  if (typeof report !== 'object' || report === null) return [];
  if ('code' in report && 'text' in report) return [String(report.code)];
  return Object.values(report).flatMap(notesIn);
}
