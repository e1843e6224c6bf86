import { type Failure } from '@millrace/contract';

export type TaskClass = 'standard' | 'large';

/** Why an attempt at a task ended without a result. */
export type TaskTrouble =
  /** The source is to blame: no retry helps. */
  | { kind: 'source'; failure: Failure; message: string }
  /** What ffmpeg or the validation of its output did: a crash, a timeout, too much memory, wrong output. */
  | {
      kind: 'encoding';
      message: string;
      /** It took more memory, disk or time than it may. */
      scarce?: true;
    }
  /** Our object store, database or programs could not be reached: nobody's file is at fault. */
  | { kind: 'infrastructure'; message: string }
  /** The worker was lost. */
  | { kind: 'lost'; message: string }
  /** The worker's disk was full: too small for this task, or filled by something else for a while. */
  | { kind: 'room'; message: string };

export interface TaskTries {
  class: TaskClass;
  /** Troubles of kind `encoding` so far. */
  failures: number;
  /** Troubles of kinds `lost` and `room` so far, in both classes. */
  losses: number;
  /** Troubles of kind `infrastructure` since the last of another kind. */
  waits: number;
  /** Milliseconds since the first of those waits; 0 without any. */
  waitedMs: number;
}

export type TroubleDecision =
  { kind: 'retry'; afterMs: number; tries: TaskTries } | { kind: 'fail'; failure: Failure; tries: TaskTries };

/** At most two retries after what ffmpeg did, in milliseconds. */
const encodingWaitsMs = [5_000, 30_000];
const lossesPerClass = 3;
/** Before the next try on a full disk, in milliseconds, by the losses before; none when the class changes. */
const roomWaitsMs = [60_000, 600_000, 0, 60_000, 600_000];
const longestWaitMs = 60_000;
/** An outage of ours is sat out this long; a team retry is the way on after that. */
const longestOutageMs = 24 * 3_600_000;
/** A task that merely lay in the queue for a day has not been tried enough. */
const leastOutageTries = 20;

const scarcity = 'needed more memory, disk or time than there is';

/**
 * What becomes of a task after a failed attempt (design.md, "The record and the transport" 7 and 13). Bad input
 * never retries; `encoding` retries twice; `infrastructure` retries for a day, with growing waits of at most a
 * minute; after three losses the task moves to the large class, after three more it fails. A full disk is a loss
 * that is given minutes to pass.
 */
export function decideTrouble(before: TaskTries, trouble: TaskTrouble): TroubleDecision {
  switch (trouble.kind) {
    case 'source':
      return { kind: 'fail', failure: trouble.failure, tries: before };
    case 'encoding': {
      const tries = { ...before, failures: before.failures + 1, waits: 0, waitedMs: 0 };
      const afterMs = encodingWaitsMs[before.failures];
      if (afterMs !== undefined) return { kind: 'retry', afterMs, tries };
      return giveUp(tries, trouble.scarce === true ? scarcity : 'failed each time');
    }
    case 'infrastructure': {
      const tries = { ...before, waits: before.waits + 1 };
      if (before.waitedMs >= longestOutageMs && tries.waits >= leastOutageTries) {
        return giveUp(tries, 'met an outage of ours that has lasted a day');
      }
      const afterMs = Math.min(1_000 * 2 ** Math.min(before.waits, 10), longestWaitMs);
      return { kind: 'retry', afterMs, tries };
    }
    case 'lost':
    case 'room': {
      const losses = before.losses + 1;
      const tries = { ...before, losses, waits: 0, waitedMs: 0 };
      const afterMs = trouble.kind === 'room' ? (roomWaitsMs[before.losses] ?? 0) : 0;
      if (losses < lossesPerClass) return { kind: 'retry', afterMs, tries };
      if (losses < 2 * lossesPerClass) return { kind: 'retry', afterMs, tries: { ...tries, class: 'large' } };
      return giveUp(tries, scarcity);
    }
  }
}

const giveUp = (tries: TaskTries, what: string): TroubleDecision => ({
  kind: 'fail',
  failure: {
    code: 'encoding_failed',
    message: `The video could not be encoded: the work ${what}. Its upload seconds were given back; upload it again or contact support.`,
  },
  tries,
});
