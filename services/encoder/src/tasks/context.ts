import { type ObjectStore } from '@millrace/objects';
import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { type ClaimedTask, type Database, type EncodeJob } from '@millrace/store';
import { type EncoderConfig } from '../config.ts';
import { type EncoderProcess, type ProcessLimits } from '../process/encoder-process.ts';
import { type MediaProbe } from '../process/media-probe.ts';
import { type Scratch } from '../scratch.ts';
import { type BlockReader } from '../source/block-reader.ts';
import { type Patience } from '../work/patience.ts';
import { TaskTroubleError } from '../work/trouble.ts';

/** What tasks work with; the same for all of an encoder. */
export interface Tools {
  config: EncoderConfig;
  store: Database;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  process: EncoderProcess;
  probe: MediaProbe;
  reader: BlockReader;
  scratch: Scratch;
}

/** One attempt at one task. */
export interface TaskContext extends Tools {
  task: ClaimedTask;
  job: EncodeJob;
  /** Aborts when the attempt must end. */
  signal: AbortSignal;
}

/** How long an outage of the record or the object store may last before an attempt is given up for it. */
const outageMs = 10 * 60_000;
export const patience = ({ clock, signal }: TaskContext): Patience => ({ clock, signal, forMs: outageMs });

/** Where the original lies. */
export function sourceKeyOf({ job }: TaskContext): string {
  if (job.sourceKey === null) {
    throw new TaskTroubleError({ kind: 'encoding', message: 'the original is gone' });
  }
  return job.sourceKey;
}

/** What any process may take, beside its work. */
const baseWallMs = 10 * 60_000;
/** Node's timers go no further. */
const longestMs = 2 ** 31 - 1;

/** Limits of one process: how long its work may take at most, and how many bytes it should write at most. */
export function limitsFor(
  { config }: TaskContext,
  { outputFolder, workMs, outputBytes }: { outputFolder: string; workMs: number; outputBytes: number },
): ProcessLimits {
  return {
    wallMs: Math.min(baseWallMs + workMs, longestMs),
    stallMs: config.ENCODER_STALL_MS,
    memoryBytes: config.ENCODER_MEMORY_BYTES,
    outputBytes: Math.min(outputBytes, Math.floor(config.ENCODER_SCRATCH_BYTES / config.ENCODER_SLOTS)),
    outputFolder,
  };
}
