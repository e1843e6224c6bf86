import { type Failure } from '@millrace/contract';
import { type TaskTrouble } from '@millrace/domain';
import { ObjectStoreError } from '@millrace/objects';
import { DatabaseUnavailableError } from '@millrace/store';
import { EncoderProcessError, type ProcessEnd } from '../process/encoder-process.ts';

/** Ends an attempt with a trouble whose kind its thrower knows. */
export class TaskTroubleError extends Error {
  override readonly name = 'TaskTroubleError';
  readonly trouble: TaskTrouble;
  constructor(trouble: TaskTrouble, options?: ErrorOptions) {
    super(trouble.message, options);
    this.trouble = trouble;
  }
}

/** The source is to blame; `failure` is what the customer reads. */
export const sourceTrouble = (failure: Failure, detail: string): TaskTroubleError =>
  new TaskTroubleError({ kind: 'source', failure, message: detail });

/** What ffmpeg made is not what was planned. */
export const wrongOutput = (message: string): TaskTroubleError =>
  new TaskTroubleError({ kind: 'encoding', message });

/** Why an attempt is ended from outside. */
export type StopReason =
  /** The video is gone or failed. */
  | 'cancelled'
  /** The lease is, or may be, another's. */
  | 'lost'
  /** This encoder stops. */
  | 'shutdown';

export class AttemptStopped extends Error {
  override readonly name = 'AttemptStopped';
  readonly reason: StopReason;
  constructor(reason: StopReason) {
    super(`the attempt was stopped: ${reason}`);
    this.reason = reason;
  }
}

/**
 * Sorts an error of an attempt. What our own parts could not do is never held against the file; an error that
 * nobody foresaw is tried again as ffmpeg's failures are, so that it ends.
 */
export function troubleOf(error: unknown): TaskTrouble {
  if (error instanceof TaskTroubleError) return error.trouble;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof DatabaseUnavailableError) return { kind: 'infrastructure', message };
  if (error instanceof ObjectStoreError) {
    return { kind: error.code === 'unavailable' ? 'infrastructure' : 'encoding', message };
  }
  if (error instanceof EncoderProcessError) return processTrouble(error);
  return { kind: isDiskFull(error) ? 'room' : 'encoding', message };
}

function processTrouble({ end, message, stderr }: EncoderProcessError): TaskTrouble {
  const detail = stderr === '' ? message : `${message}\n${stderr}`;
  if (end === 'spawn') return { kind: 'infrastructure', message: detail };
  // A worker with more room may do it; one that has the same will be told three times.
  if (/No space left on device|Disk quota exceeded/.test(stderr)) return { kind: 'room', message: detail };
  return { kind: 'encoding', message: detail, ...(isScarce(end, message) ? { scarce: true } : {}) };
}

/** A kill that is not ours is that of a system that has no memory left. */
const isScarce = (end: ProcessEnd, message: string): boolean =>
  ['memory', 'output', 'wall'].includes(end) || (end === 'signal' && message.includes('SIGKILL'));

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
