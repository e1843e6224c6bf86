import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  encodeTime,
  failTask,
  findEncodeJob,
  type FinishOutcome,
  releaseTask,
} from '@millrace/store';
import { inSpan } from '@millrace/platform';
import { assembleTask } from '../tasks/assemble.ts';
import { type TaskContext, type Tools } from '../tasks/context.ts';
import { mediaTask } from '../tasks/media.ts';
import { planTask } from '../tasks/plan.ts';
import { posterTask } from '../tasks/poster.ts';
import { mayBeChunking, runWhole } from '../tasks/run-whole.ts';
import { attemptMeasures } from './measures.ts';
import { patiently } from './patience.ts';
import { AttemptStopped, type StopReason, troubleOf } from './trouble.ts';

/** How an attempt ended, for metrics. */
export type AttemptResult =
  | FinishOutcome
  | 'over_limit'
  /** The video is made anew, in one piece. */
  | 'replanned'
  | 'retry'
  | 'failed'
  | StopReason
  /** The record could not be told: the lease runs out, and the task is claimed again. */
  | 'unrecorded';

/** How long the end of an attempt waits for the record, in milliseconds. */
const recordMs = 20_000;

/**
 * Works on a claimed task until its result, its trouble or its return is in the record. Never rejects. What it
 * wrote stays only if it won.
 *
 * @param signal aborts with an `AttemptStopped`
 */
export function attempt(tools: Tools, task: ClaimedTask, signal: AbortSignal): Promise<AttemptResult> {
  const { id: taskId, jobId, videoId, kind, index, fence, trace } = task;
  const logger = tools.logger.child({ taskId, jobId, videoId, kind, index, fence });
  // A permit lets a slot look for work; whose work that is says the record, and so it says whose trace goes on.
  const attributes = { taskId, jobId, videoId, index, fence };
  return inSpan(`encode ${kind}`, { attributes, from: trace }, async (span) => {
    const result = await attemptInside({ ...tools, logger }, task, signal);
    span.setAttribute('result', result);
    return result;
  });
}

async function attemptInside(own: Tools, task: ClaimedTask, signal: AbortSignal): Promise<AttemptResult> {
  const result = await perform(own, task, signal).catch((error: unknown) =>
    recordEnd(own, task, signal.aborted ? signal.reason : error),
  );
  if (result !== 'done') await removeWrites(own, task);
  else if (task.kind === 'assemble') await measureReady(own, task);
  own.logger.info({ result }, 'attempt ended');
  return result;
}

async function perform(tools: Tools, task: ClaimedTask, signal: AbortSignal): Promise<AttemptResult> {
  const job = await patiently({ clock: tools.clock, signal, forMs: recordMs }, () =>
    findEncodeJob(tools.store, task.jobId),
  );
  if (job === null) throw new AttemptStopped('cancelled');
  const context: TaskContext = { ...tools, task, job, signal };
  try {
    return await work(context);
  } catch (error) {
    if (signal.aborted || !mayBeChunking(context, error)) throw error;
    return await runWhole(context, error);
  }
}

function work(context: TaskContext): Promise<AttemptResult> {
  switch (context.task.kind) {
    case 'plan':
      return planTask(context);
    case 'video':
    case 'audio':
    case 'images':
      return mediaTask(context);
    case 'assemble':
      return assembleTask(context);
    case 'poster':
      return posterTask(context);
  }
}

/** The attempt itself is over, so nothing stops this but time. */
const unstoppable = new AbortController().signal;

async function recordEnd(tools: Tools, task: ClaimedTask, error: unknown): Promise<AttemptResult> {
  const { clock, logger, metrics, store } = tools;
  const tell = <T>(work: () => Promise<T>): Promise<T> =>
    patiently({ clock, signal: unstoppable, forMs: recordMs }, work);
  try {
    if (error instanceof AttemptStopped) {
      if (error.reason === 'shutdown') await tell(() => releaseTask(store, task));
      return error.reason;
    }
    const trouble = troubleOf(error);
    logger.warn({ err: error, trouble: trouble.kind, detail: trouble.message }, 'attempt failed');
    const outcome = await tell(() => failTask(store, attemptOf(task), trouble));
    attemptMeasures(metrics).trouble(trouble.kind, outcome.kind);
    return outcome.kind;
  } catch (failure) {
    logger.error({ err: failure }, 'the end of an attempt could not be recorded');
    return 'unrecorded';
  }
}

/** How long the video took; a number that cannot be had is not worth an attempt's while. */
async function measureReady({ store, metrics, logger }: Tools, { jobId }: ClaimedTask): Promise<void> {
  const time = await encodeTime(store, jobId).catch((error: unknown) => {
    logger.warn({ err: error }, 'the time to ready was not measured');
    return null;
  });
  if (time !== null) attemptMeasures(metrics).ready(time);
}

/** Deletes what a losing attempt wrote. Its row is a tombstone by then: the sweep finds what this misses. */
async function removeWrites({ store, objects, logger }: Tools, task: ClaimedTask): Promise<void> {
  try {
    const prefix = await abandonAttempt(store, attemptOf(task));
    if (prefix === null) return;
    for (let after: string | undefined; ;) {
      const page = await objects.list(prefix, after);
      await objects.deleteMany(page.items.map((object) => object.key));
      if (page.next === null) return;
      after = page.next;
    }
  } catch (error) {
    logger.warn({ err: error }, 'the objects of an attempt were left to the sweep');
  }
}
