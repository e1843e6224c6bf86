import { availableParallelism, hostname, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { checkKafkaSettings, kafkaSettings } from '@millrace/bus/kafka-settings';
import { checkS3Settings, s3Settings } from '@millrace/objects/s3-settings';
import { processSettings } from '@millrace/platform';
import { databaseSettings } from '@millrace/store';
import { z } from 'zod';

/** CPUs that this process may use; Node asks the scheduler and the cgroup. */
const cpus = availableParallelism();
/** Memory that this process may use: the cgroup's limit, else the machine's. */
const memoryBytes = Math.min(process.constrainedMemory() || Infinity, totalmem());
const mebibyte = 1024 ** 2;
const defaultSlots = Math.max(2, Math.floor(cpus / 4));

const bytes = z.coerce.number().int().positive();
const milliseconds = z.coerce.number().int().positive();

/** The encoder's settings. */
export const encoderConfig = z.object({
  /** Tasks worked on at once. */
  ENCODER_SLOTS: z.coerce.number().int().min(1).max(256).default(defaultSlots),
  /** Classes of tasks taken, by preference: `standard,large`. */
  ENCODER_CLASSES: z
    .string()
    .default('standard,large')
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(['standard', 'large'])).min(1)),
  /** Threads of each ffmpeg. */
  ENCODER_THREADS: z.coerce.number().int().min(1).max(64).default(Math.min(16, cpus)),
  /** Name of this worker in the record, for operators. */
  ENCODER_WORKER: z.string().min(1).default(`${hostname()}-${process.pid}`),
  /** How long a task is ours after the last heartbeat; heartbeats come three times as often. */
  ENCODER_LEASE_MS: milliseconds.min(300).default(60_000),
  /** How long a graceful stop lets tasks end before it hands them back. */
  ENCODER_DRAIN_MS: z.coerce.number().int().nonnegative().default(5_000),
  /** How often an idle encoder looks for work by itself. */
  ENCODER_IDLE_MS: milliseconds.default(1_000),
  /** Where attempts write. This encoder's alone: what it finds there at its start, it removes. */
  ENCODER_SCRATCH_DIR: z.string().min(1).default(path.join(tmpdir(), 'millrace-encoder')),
  /** All attempts together. */
  ENCODER_SCRATCH_BYTES: bytes.default(64 * 1024 * mebibyte),
  /** With less than that free on its scratch's disk an encoder takes no work, and says that it is not ready. */
  ENCODER_SCRATCH_SPARE_BYTES: z.coerce
    .number()
    .int()
    .nonnegative()
    .default(32 * mebibyte),
  /** Resident memory of one ffmpeg. The default: of three quarters of the memory a share for each slot. */
  ENCODER_MEMORY_BYTES: bytes.default(
    Math.max(512 * mebibyte, Math.floor((0.75 * memoryBytes) / defaultSlots)),
  ),
  /** Blocks of the source kept for each task. */
  ENCODER_CACHE_BYTES: bytes.default(64 * mebibyte),
  /** An ffmpeg that gets nothing done for this long is killed; longer than the block reader's retries. */
  ENCODER_STALL_MS: milliseconds.default(180_000),
  /** Wall time that a second of media may take, beside ten minutes for any task. */
  ENCODER_MAX_SECONDS_PER_SECOND: z.coerce.number().positive().default(60),
  /**
   * Length of a video task, in seconds of the video: whole segments, and the whole video where its source gives
   * no safe place to begin in its middle. Without it every video is one task.
   */
  ENCODER_CHUNK_SECONDS: z.coerce.number().positive().optional(),
  /** libx264's preset. */
  ENCODER_PRESET: z
    .enum(['ultrafast', 'superfast', 'veryfast', 'faster', 'fast', 'medium', 'slow', 'slower'])
    .default('veryfast'),
});

export type EncoderConfig = z.output<typeof encoderConfig>;

/** Of an encoder that is a process of its own. */
export const encoderProcessConfig = encoderConfig
  .safeExtend({ ...processSettings, ...databaseSettings, ...kafkaSettings, ...s3Settings })
  .superRefine(checkKafkaSettings)
  .superRefine(checkS3Settings);
