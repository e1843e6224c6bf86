import { type Failure } from '@millrace/contract';

export type TaskClass = 'standard' | 'large';

/** Why an attempt at a task ended without a result. */
export type TaskTrouble =
  /** The source is to blame: no retry helps. */
  | { kind: 'source'; failure: Failure; message: string }
  /** What ffmpeg or the validation of its output did: a crash, a timeout, too much memory, wrong output. */
  | { kind: 'encoding'; message: string }
  /** Our object store, database or disk could not be reached: nobody's file is at fault. */
  | { kind: 'infrastructure'; message: string }
  /** The worker was lost, or had too little room for this task. */
  | { kind: 'lost'; message: string };

export interface TaskTries {
  class: TaskClass;
  /** Troubles of kind `encoding` so far. */
  failures: number;
  /** Troubles of kind `lost` so far, in both classes. */
  losses: number;
  /** Troubles of kind `infrastructure` since the last of another kind. */
  waits: number;
}

export type TroubleDecision =
  { kind: 'retry'; afterMs: number; tries: TaskTries } | { kind: 'fail'; failure: Failure; tries: TaskTries };

/** At most two retries after what ffmpeg did, in milliseconds. */
const encodingWaitsMs = [5_000, 30_000];
const lossesPerClass = 3;
const longestWaitMs = 60_000;

/**
 * What becomes of a task after a failed attempt (design.md, "The record and the transport" 7). Bad input never
 * retries; `encoding` retries twice; `infrastructure` retries for as long as it takes, with growing waits of at
 * most a minute; after three losses the task moves to the large class, after three more it fails.
 */
export function decideTrouble(before: TaskTries, trouble: TaskTrouble): TroubleDecision {
  switch (trouble.kind) {
    case 'source':
      return { kind: 'fail', failure: trouble.failure, tries: before };
    case 'encoding': {
      const tries = { ...before, failures: before.failures + 1, waits: 0 };
      const afterMs = encodingWaitsMs[before.failures];
      return afterMs === undefined ? giveUp(tries, 'failed each time') : { kind: 'retry', afterMs, tries };
    }
    case 'infrastructure': {
      const afterMs = Math.min(1_000 * 2 ** Math.min(before.waits, 10), longestWaitMs);
      return { kind: 'retry', afterMs, tries: { ...before, waits: before.waits + 1 } };
    }
    case 'lost': {
      const losses = before.losses + 1;
      const tries = { ...before, losses, waits: 0 };
      if (losses < lossesPerClass) return { kind: 'retry', afterMs: 0, tries };
      if (losses < 2 * lossesPerClass)
        return { kind: 'retry', afterMs: 0, tries: { ...tries, class: 'large' } };
      return giveUp(tries, 'needed more memory, disk or time than there is');
    }
  }
}

const giveUp = (tries: TaskTries, what: string): TroubleDecision => ({
  kind: 'fail',
  failure: {
    code: 'encoding_failed',
    message: `The video could not be encoded: the work ${what}. Its upload seconds were given back; try again or contact support.`,
  },
  tries,
});
